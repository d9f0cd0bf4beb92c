//! Traces from the client over the server to the worker, as a collector receives them.

use std::time::Instant;

use orchestrix_testkit::TraceCollector;
use serde_json::{Value, json};

use crate::{
    harness::{TestEnv, orchestrix},
    server::process::{ServerProcess, TIMEOUT},
};

const TRACE_ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CLIENT: &str = "00f067aa0ba902b7";

/// A span as it was exported, with its resource.
#[derive(Debug, Clone)]
struct ExportedSpan {
    span: Value,
    resource: Value,
}

impl ExportedSpan {
    fn attribute(&self, name: &str) -> Value {
        attribute_of(&self.span, name)
    }
}

/// The value of an attribute of a span or of a resource; null if there is none of this name.
fn attribute_of(holder: &Value, name: &str) -> Value {
    let attributes = holder["attributes"].as_array().unwrap();
    let value = attributes.iter().find(|attribute| attribute["key"] == name).map(|attribute| &attribute["value"]);
    value.and_then(|value| value.as_object()?.values().next()).cloned().unwrap_or_default()
}

fn spans(bodies: &[String]) -> Vec<ExportedSpan> {
    let mut spans = Vec::new();
    for body in bodies {
        let body: Value = serde_json::from_str(body).unwrap();
        for from in body["resourceSpans"].as_array().unwrap() {
            for scope in from["scopeSpans"].as_array().unwrap() {
                for span in scope["spans"].as_array().unwrap() {
                    spans.push(ExportedSpan { span: span.clone(), resource: from["resource"].clone() });
                }
            }
        }
    }
    spans
}

/// Waits for the first span of this name with this attribute.
fn wait_for_span(collector: &TraceCollector, name: &str, attribute: &str, value: &str) -> ExportedSpan {
    let found = collector.wait(TIMEOUT, |bodies| {
        spans(bodies).into_iter().find(|sent| sent.span["name"] == name && sent.attribute(attribute) == value)
    });
    found.unwrap_or_else(|| {
        panic!("no {name} with {attribute} {value}: {:#?}", collector.wait(TIMEOUT, |all| Some(spans(all))))
    })
}

fn post(server: &ServerProcess, request: &str, traceparent: Option<&str>, job: &Value) -> String {
    let mut headers = vec![("content-type", "application/json"), ("x-request-id", request)];
    headers.extend(traceparent.map(|trace| ("traceparent", trace)));
    server.call("POST", "/jobs", &headers, &job.to_string()).accepted_job_id()
}

fn dev(env: &TestEnv, otlp: &str) -> ServerProcess {
    let mut command =
        orchestrix(&["dev", "--listen", "127.0.0.1:0", "--otlp", otlp, "--log-format", "json", "--log", "debug"]);
    command.current_dir(env.dir());
    ServerProcess::spawn(command)
}

#[test]
fn a_request_joins_its_clients_trace_and_the_attempt_joins_the_request() {
    let (env, collector) = (TestEnv::sqlite(), TraceCollector::start().unwrap());
    let server = dev(&env, &collector.url());
    let traceparent = format!("00-{TRACE_ID}-{CLIENT}-01");
    let fails = json!({"jobType": "orchestrix.fail", "payload": {"message": "sesame", "retryable": false}, "correlationId": "order-7"});
    let id = post(&server, "one", Some(&traceparent), &fails);
    server.wait_for_status(&id, "FAILED");
    let lone = post(&server, "two", None, &json!({"jobType": "orchestrix.noop"}));
    server.wait_for_status(&lone, "COMPLETED");
    // Spans are flushed before the process exits.
    let lines = server.shut_down();

    let request = wait_for_span(&collector, "POST /jobs", "request_id", "one");
    assert_eq!((&request.span["traceId"], &request.span["parentSpanId"]), (&TRACE_ID.into(), &CLIENT.into()));
    assert_eq!((&request.span["kind"], &request.attribute("status")), (&2.into(), &"202".into()), "{request:#?}");
    assert_eq!(attribute_of(&request.resource, "service.name"), "orchestrix");
    assert_eq!(attribute_of(&request.resource, "service.version"), env!("CARGO_PKG_VERSION"));

    let job = wait_for_span(&collector, "orchestrix.fail", "job_id", &id);
    assert_eq!((&job.span["traceId"], &job.span["parentSpanId"]), (&TRACE_ID.into(), &request.span["spanId"]));
    assert_eq!((&job.span["kind"], &job.span["status"]["code"]), (&5.into(), &2.into()), "{job:#?}");
    assert_eq!((job.attribute("outcome"), job.attribute("correlation_id")), ("failed".into(), "order-7".into()));

    // Without a client's trace the request starts one, and the log carries the same trace id.
    let request = wait_for_span(&collector, "POST /jobs", "request_id", "two");
    let job = wait_for_span(&collector, "orchestrix.noop", "job_id", &lone);
    assert_eq!((&job.span["traceId"], &job.span["parentSpanId"]), (&request.span["traceId"], &request.span["spanId"]));
    let trace = format!("\"traceId\":{}", request.span["traceId"]);
    assert!(lines.iter().any(|line| line.contains("\"requestId\":\"two\"") && line.contains(&trace)), "{lines:#?}");
    assert!(lines.iter().any(|line| line.contains("\"outcome\"") && line.contains(&trace)), "{lines:#?}");
    assert_eq!(collector.wait(TIMEOUT, |bodies| Some(bodies.concat().contains("sesame"))), Some(false));
}

#[test]
fn a_trace_continues_in_a_remote_worker() {
    let (env, collector) = (TestEnv::sqlite(), TraceCollector::start().unwrap());
    let mut command = env.command(&["server", "--no-auth", "--listen", "127.0.0.1:0"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url()).env("OTEL_SERVICE_NAME", "jobs-api");
    let server = ServerProcess::spawn(command);
    let mut command = orchestrix(&["worker", "--server", &format!("http://{}", server.address)]);
    command.current_dir(env.dir()).env("ORCHESTRIX_OTLP", collector.url()).env("OTEL_BSP_SCHEDULE_DELAY", "50");
    let worker = ServerProcess::spawn(command);
    // Sampled or not, the trace is the client's.
    for (flags, request) in [("01", "one"), ("00", "two")] {
        let id = post(
            &server,
            request,
            Some(&format!("00-{TRACE_ID}-{CLIENT}-{flags}")),
            &json!({"jobType": "orchestrix.noop"}),
        );
        server.wait_for_status(&id, "COMPLETED");
    }
    server.shut_down();
    worker.shut_down();
    let request = wait_for_span(&collector, "POST /jobs", "request_id", "one");
    let all = collector.wait(TIMEOUT, |bodies| Some(spans(bodies))).unwrap();
    let jobs: Vec<&ExportedSpan> = all.iter().filter(|sent| sent.span["name"] == "orchestrix.noop").collect();
    let [job] = jobs[..] else { panic!("what was not sampled was sent: {jobs:#?}") };
    assert_eq!((&job.span["traceId"], &job.span["parentSpanId"]), (&TRACE_ID.into(), &request.span["spanId"]));
    assert_eq!(attribute_of(&request.resource, "service.name"), "jobs-api");
    assert_eq!(attribute_of(&job.resource, "service.name"), "orchestrix");
}

#[test]
fn an_unreachable_collector_costs_one_warning() {
    // Accepts connections and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    for url in ["http://127.0.0.1:1".to_owned(), format!("http://{}", silent.local_addr().unwrap())] {
        let env = TestEnv::sqlite();
        let mut command = orchestrix(&["dev", "--listen", "127.0.0.1:0", "--otlp", &url]);
        command.current_dir(env.dir()).envs([("OTEL_BSP_SCHEDULE_DELAY", "10"), ("OTEL_EXPORTER_OTLP_TIMEOUT", "300")]);
        let server = ServerProcess::spawn(command);
        let begun = Instant::now();
        for n in 0..3 {
            let id = post(&server, &n.to_string(), None, &json!({"jobType": "orchestrix.noop"}));
            server.wait_for_status(&id, "COMPLETED");
        }
        assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
        server.wait_for_line("cannot send traces");
        let begun = Instant::now();
        let lines = server.shut_down();
        assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
        let warnings = lines.iter().filter(|line| line.contains("cannot send traces")).count();
        assert_eq!(warnings, 1, "{lines:#?}");
    }
}

#[test]
fn the_collector_url_is_validated_at_start_and_never_shown() {
    let env = TestEnv::sqlite();
    for url in ["hunter2", "ftp://hunter2", "http://me:hunter2@127.0.0.1:4318", "http://"] {
        let ran = env.run(&["worker", "--otlp", url]).exits_with(2, "--otlp");
        assert!(!ran.stderr.contains("hunter2"), "{ran:?}");
        let ran = crate::harness::CliOutput::run(env.command(&["worker"]).env("OTEL_EXPORTER_OTLP_ENDPOINT", url));
        assert!(ran.exits_with(2, "OTEL_EXPORTER_OTLP_ENDPOINT").stderr.lines().count() == 1);
    }
}
