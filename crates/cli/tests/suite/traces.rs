//! Traces, from a client over the server to a worker, as a collector gets them.

use std::time::Instant;

use orchestrix_testkit::Collector;
use serde_json::{Value, json};

use crate::{
    server::http::{LIMIT, Server},
    support::{Place, bare},
};

const TRACE_ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CLIENT: &str = "00f067aa0ba902b7";

/// A span as it was sent, and the resource that it came from.
#[derive(Debug, Clone)]
struct Sent {
    span: Value,
    resource: Value,
}

impl Sent {
    fn attribute(attributes: &Value, name: &str) -> Value {
        let all = attributes["attributes"].as_array().unwrap();
        let known = all.iter().find(|attribute| attribute["key"] == name).map(|attribute| &attribute["value"]);
        known.and_then(|value| value.as_object()?.values().next()).cloned().unwrap_or_default()
    }

    fn says(&self, name: &str) -> Value {
        Self::attribute(&self.span, name)
    }
}

fn spans(bodies: &[String]) -> Vec<Sent> {
    let mut spans = Vec::new();
    for body in bodies {
        let body: Value = serde_json::from_str(body).unwrap();
        for from in body["resourceSpans"].as_array().unwrap() {
            for scope in from["scopeSpans"].as_array().unwrap() {
                for span in scope["spans"].as_array().unwrap() {
                    spans.push(Sent { span: span.clone(), resource: from["resource"].clone() });
                }
            }
        }
    }
    spans
}

/// The first span of this name with this attribute, once it was sent.
fn sent(collector: &Collector, name: &str, attribute: &str, value: &str) -> Sent {
    let found = collector.wait(LIMIT, |bodies| {
        spans(bodies).into_iter().find(|sent| sent.span["name"] == name && sent.says(attribute) == value)
    });
    found.unwrap_or_else(|| {
        panic!("no {name} with {attribute} {value}: {:#?}", collector.wait(LIMIT, |all| Some(spans(all))))
    })
}

fn post(server: &Server, request: &str, traceparent: Option<&str>, job: &Value) -> String {
    let mut headers = vec![("content-type", "application/json"), ("x-request-id", request)];
    headers.extend(traceparent.map(|trace| ("traceparent", trace)));
    server.call("POST", "/jobs", &headers, &job.to_string()).accepted()
}

fn dev(place: &Place, otlp: &str) -> Server {
    let mut command =
        bare(&["dev", "--listen", "127.0.0.1:0", "--otlp", otlp, "--log-format", "json", "--log", "debug"]);
    command.current_dir(place.folder());
    Server::of(command)
}

#[test]
fn a_request_belongs_to_its_clients_trace_and_its_job_to_the_request() {
    let (place, collector) = (Place::sqlite(), Collector::start().unwrap());
    let server = dev(&place, &collector.url());
    let traceparent = format!("00-{TRACE_ID}-{CLIENT}-01");
    let fails = json!({"jobType": "orchestrix.fail", "payload": {"message": "sesame", "retryable": false}, "correlationId": "order-7"});
    let id = post(&server, "one", Some(&traceparent), &fails);
    server.until(&id, "FAILED");
    let lone = post(&server, "two", None, &json!({"jobType": "orchestrix.noop"}));
    server.until(&lone, "COMPLETED");
    // What is gathered is sent before the end.
    let lines = server.last_words();

    let request = sent(&collector, "POST /jobs", "request_id", "one");
    assert_eq!((&request.span["traceId"], &request.span["parentSpanId"]), (&TRACE_ID.into(), &CLIENT.into()));
    assert_eq!((&request.span["kind"], &request.says("status")), (&2.into(), &"202".into()), "{request:#?}");
    assert_eq!(Sent::attribute(&request.resource, "service.name"), "orchestrix");
    assert_eq!(Sent::attribute(&request.resource, "service.version"), env!("CARGO_PKG_VERSION"));

    let job = sent(&collector, "orchestrix.fail", "job_id", &id);
    assert_eq!((&job.span["traceId"], &job.span["parentSpanId"]), (&TRACE_ID.into(), &request.span["spanId"]));
    assert_eq!((&job.span["kind"], &job.span["status"]["code"]), (&5.into(), &2.into()), "{job:#?}");
    assert_eq!((job.says("outcome"), job.says("correlation_id")), ("failed".into(), "order-7".into()));

    // Without a client's trace the request begins one, and whoever reads the log finds it by the same id.
    let request = sent(&collector, "POST /jobs", "request_id", "two");
    let job = sent(&collector, "orchestrix.noop", "job_id", &lone);
    assert_eq!((&job.span["traceId"], &job.span["parentSpanId"]), (&request.span["traceId"], &request.span["spanId"]));
    let trace = format!("\"traceId\":{}", request.span["traceId"]);
    assert!(lines.iter().any(|line| line.contains("\"requestId\":\"two\"") && line.contains(&trace)), "{lines:#?}");
    assert!(lines.iter().any(|line| line.contains("\"ended\"") && line.contains(&trace)), "{lines:#?}");
    assert_eq!(collector.wait(LIMIT, |bodies| Some(bodies.concat().contains("sesame"))), Some(false));
}

#[test]
fn a_trace_goes_on_in_a_worker_that_is_elsewhere() {
    let (place, collector) = (Place::sqlite(), Collector::start().unwrap());
    let mut command = place.command(&["server", "--no-auth", "--listen", "127.0.0.1:0"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url()).env("OTEL_SERVICE_NAME", "jobs-api");
    let server = Server::of(command);
    let mut command = bare(&["worker", "--server", &format!("http://{}", server.address)]);
    command.current_dir(place.folder()).env("ORCHESTRIX_OTLP", collector.url()).env("OTEL_BSP_SCHEDULE_DELAY", "50");
    let worker = Server::of(command);
    // Sampled or not, the trace is the client's.
    for (flags, request) in [("01", "one"), ("00", "two")] {
        let id = post(
            &server,
            request,
            Some(&format!("00-{TRACE_ID}-{CLIENT}-{flags}")),
            &json!({"jobType": "orchestrix.noop"}),
        );
        server.until(&id, "COMPLETED");
    }
    server.last_words();
    worker.last_words();
    let request = sent(&collector, "POST /jobs", "request_id", "one");
    let all = collector.wait(LIMIT, |bodies| Some(spans(bodies))).unwrap();
    let jobs: Vec<&Sent> = all.iter().filter(|sent| sent.span["name"] == "orchestrix.noop").collect();
    let [job] = jobs[..] else { panic!("what was not sampled was sent: {jobs:#?}") };
    assert_eq!((&job.span["traceId"], &job.span["parentSpanId"]), (&TRACE_ID.into(), &request.span["spanId"]));
    assert_eq!(Sent::attribute(&request.resource, "service.name"), "jobs-api");
    assert_eq!(Sent::attribute(&job.resource, "service.name"), "orchestrix");
}

#[test]
fn a_collector_that_is_away_costs_a_warning_and_nothing_else() {
    // Nobody answers there, neither with yes nor with no.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    for url in ["http://127.0.0.1:1".to_owned(), format!("http://{}", silent.local_addr().unwrap())] {
        let place = Place::sqlite();
        let mut command = bare(&["dev", "--listen", "127.0.0.1:0", "--otlp", &url]);
        command
            .current_dir(place.folder())
            .envs([("OTEL_BSP_SCHEDULE_DELAY", "10"), ("OTEL_EXPORTER_OTLP_TIMEOUT", "300")]);
        let server = Server::of(command);
        let begun = Instant::now();
        for n in 0..3 {
            let id = post(&server, &n.to_string(), None, &json!({"jobType": "orchestrix.noop"}));
            server.until(&id, "COMPLETED");
        }
        assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
        server.says("traces cannot be sent");
        let begun = Instant::now();
        let lines = server.last_words();
        assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
        let warnings = lines.iter().filter(|line| line.contains("traces cannot be sent")).count();
        assert_eq!(warnings, 1, "{lines:#?}");
    }
}

#[test]
fn where_traces_go_is_checked_at_once_and_never_shown() {
    let place = Place::sqlite();
    for url in ["hunter2", "ftp://hunter2", "http://me:hunter2@127.0.0.1:4318", "http://"] {
        let ran = place.run(&["worker", "--otlp", url]).ended(2, "--otlp");
        assert!(!ran.stderr.contains("hunter2"), "{ran:?}");
        let ran = crate::support::Ran::of(place.command(&["worker"]).env("OTEL_EXPORTER_OTLP_ENDPOINT", url));
        assert!(ran.ended(2, "OTEL_EXPORTER_OTLP_ENDPOINT").stderr.lines().count() == 1);
    }
}
