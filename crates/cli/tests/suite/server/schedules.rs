//! The client API for schedules.

use serde_json::json;

use super::process::ServerProcess;
use crate::harness::each_database;

#[test]
fn a_schedule_is_put_shown_listed_paused_triggered_and_deleted() {
    for env in each_database() {
        let server = ServerProcess::start(&env);
        let request = json!({"cron": "0 9 * * *", "timezone": "Europe/Berlin", "job": {"jobType": "report", "payload": {"a": 1}}});
        let put = server.send("PUT", "/schedules/daily", &request.to_string());
        assert_eq!(put.status, 201, "{put:?}");
        let shown = put.json();
        assert_eq!(shown["put"], "created");
        assert_eq!(shown["name"], "daily");
        assert_eq!(
            (&shown["overlap"], &shown["misfire"], &shown["paused"]),
            (&"skip".into(), &"fire_once".into(), &false.into())
        );
        assert_eq!(shown["job"]["jobType"], "report");
        assert!(shown["nextFireAt"].is_string());
        let again = server.send("PUT", "/schedules/daily", &request.to_string());
        assert_eq!((again.status, &again.json()["put"]), (200, &"unchanged".into()));
        let times = server.get("/schedules/daily/next?count=3").json();
        assert_eq!(times["times"].as_array().unwrap().len(), 3);
        let after = server.get("/schedules/daily/next?count=1&after=2026-03-28T12:00:00Z").json();
        assert_eq!(after["times"], json!(["2026-03-29T07:00:00Z"]));
        assert_eq!(server.get("/schedules/daily/next?count=0&after=x").invalid_fields(), ["after", "count"]);
        let paused = server.send("POST", "/schedules/daily/pause", r#"{"note": "why"}"#).json();
        assert_eq!(
            (&paused["paused"], &paused["note"], &paused["changed"]),
            (&true.into(), &"why".into(), &true.into())
        );
        for changed in [true, false] {
            let resumed = server.send("POST", "/schedules/daily/resume", "").json();
            assert_eq!((&resumed["paused"], &resumed["changed"]), (&false.into(), &changed.into()));
        }
        let id = server.send("POST", "/schedules/daily/trigger", "").accepted_job_id();
        assert_eq!(server.get("/schedules/daily").json()["unfinishedJobs"], json!([id]));
        assert_eq!(server.send("POST", &format!("/jobs/{id}/cancel"), "").status, 202);
        assert_eq!(server.get("/schedules/daily").json()["unfinishedJobs"], json!([]));
        let lines = server.get("/schedules/daily/occurrences").json();
        assert_eq!(lines["items"][0]["jobId"], *id);
        assert_eq!((&lines["items"][0]["outcome"], &lines["items"][0]["reason"]), (&"fired".into(), &"trigger".into()));
        let list = server.get("/schedules?limit=1").json();
        assert_eq!((list["items"].as_array().unwrap().len(), &list["nextCursor"]), (1, &json!(null)));
        assert_eq!(server.call("DELETE", "/schedules/daily", &[], "").status, 204);
        server.get("/schedules/daily").problem(404, "schedule_not_found");
        server.call("DELETE", "/schedules/daily", &[], "").problem(404, "schedule_not_found");
    }
}

#[test]
fn a_backfill_fires_past_times_once() {
    for env in each_database() {
        let server = ServerProcess::start(&env);
        let request = json!({"everySeconds": 3600, "job": {"jobType": "t"}, "overlap": "allow"});
        assert_eq!(server.send("PUT", "/schedules/hourly", &request.to_string()).status, 201);
        let range = json!({"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T05:00:00Z"});
        let mut dry = range.clone();
        (dry["dryRun"], dry["overlap"]) = (true.into(), "skip".into());
        let planned = server.post("/schedules/hourly/backfill", &dry);
        let plan = planned.json();
        assert_eq!((planned.status, &plan["fired"], &plan["skipped"]), (200, &1.into(), &4.into()), "{plan}");
        let fates: Vec<&str> =
            plan["items"].as_array().unwrap().iter().map(|line| line["outcome"].as_str().unwrap()).collect();
        assert_eq!(fates, ["fired", "skipped", "skipped", "skipped", "skipped"]);
        assert_eq!(server.get("/schedules/hourly/occurrences").json()["items"], json!([]));
        let filled = server.post("/schedules/hourly/backfill", &range);
        let answer = |fired: usize| json!({"overlap": "allow", "fired": fired, "skipped": 0, "dryRun": false});
        assert_eq!((filled.status, filled.json()), (202, answer(5)));
        assert_eq!(server.post("/schedules/hourly/backfill", &range).json(), answer(0));
        let page = server.get("/schedules/hourly/occurrences?limit=3").json();
        let cursor = page["nextCursor"].as_str().unwrap();
        let rest = server.get(&format!("/schedules/hourly/occurrences?limit=3&cursor={cursor}")).json();
        assert_eq!((page["items"].as_array().unwrap().len(), rest["items"].as_array().unwrap().len()), (3, 2));
    }
}

#[test]
fn invalid_schedules_are_refused_by_field() {
    for env in each_database() {
        let server = ServerProcess::start(&env);
        let put = |body: serde_json::Value| server.send("PUT", "/schedules/s", &body.to_string());
        let bad = put(json!({"cron": "0 25 * * *", "timezone": "Mars/Olympus", "job": {"jobType": "a b"}}));
        assert_eq!(bad.invalid_fields(), ["cron", "job.jobType", "timezone"]);
        assert!(bad.body.contains("character"), "{bad:?}");
        assert_eq!(put(json!({"everySeconds": 0.5, "job": {"jobType": "t"}})).invalid_fields(), ["everySeconds"]);
        assert_eq!(put(json!({"job": {"jobType": "t"}})).invalid_fields(), ["cron"]);
        let ends = json!({"cron": "@daily", "job": {"jobType": "t"}, "startAt": "2027-01-02T00:00:00Z", "endAt": "2027-01-01T00:00:00Z"});
        assert_eq!(put(ends).invalid_fields(), ["endAt"]);
        assert_eq!(server.send("PUT", "/schedules/not%20good", "{}").invalid_fields(), ["name"]);
        assert_eq!(server.get("/schedules").json(), json!({"items": [], "nextCursor": null}));
        assert_eq!(server.get("/schedules?limit=0").invalid_fields(), ["limit"]);
        assert_eq!(server.get("/schedules?limit=x").invalid_fields(), ["limit"]);
    }
}
