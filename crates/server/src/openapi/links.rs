//! Where an answer leads: which operations take what it holds.

use serde_json::{Map, Value, json};

struct Lead {
    from: &'static str,
    /// The parameter that the operations take, and where it is found.
    parameter: (&'static str, &'static str),
    to: &'static [&'static str],
}

const LEADS: [Lead; 4] = [
    Lead {
        from: "createJob",
        parameter: ("jobId", "$response.body#/jobId"),
        to: &["getJob", "getResult", "cancelJob", "releaseJob"],
    },
    Lead {
        from: "beginOperation",
        parameter: ("id", "$response.body#/operationId"),
        to: &["getOperation", "abortOperation"],
    },
    Lead {
        from: "putSchedule",
        parameter: ("name", "$response.body#/name"),
        to: &[
            "getSchedule",
            "deleteSchedule",
            "pauseSchedule",
            "resumeSchedule",
            "triggerSchedule",
            "backfillSchedule",
            "nextTimes",
            "listOccurrences",
        ],
    },
    Lead {
        from: "leaseJobs",
        parameter: ("leaseToken", "$response.body#/leases/0/leaseToken"),
        to: &["completeLease", "failLease", "snoozeLease", "releaseLease", "tellProgress", "appendLogs"],
    },
];

/// Adds the links to what is answered when all is well.
pub(super) fn complete(document: &mut Value) {
    for (_, _, operation) in super::operations(document) {
        let Some(lead) = LEADS.iter().find(|lead| operation["operationId"] == lead.from) else { continue };
        let (name, place) = lead.parameter;
        let links: Map<String, Value> = lead
            .to
            .iter()
            .map(|to| ((*to).to_owned(), json!({"operationId": to, "parameters": {name: place}})))
            .collect();
        let answers = operation["responses"].as_object_mut().into_iter().flatten();
        for (_, answer) in answers.filter(|(status, _)| status.starts_with('2')) {
            answer["links"] = json!(links);
        }
    }
}
