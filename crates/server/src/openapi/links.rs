//! OpenAPI links: which operations accept a value of a response.

use serde_json::{Map, Value, json};

struct ResponseLinks {
    from: &'static str,
    /// The parameter of the linked operations, and the expression of its value.
    parameter: (&'static str, &'static str),
    to: &'static [&'static str],
}

const LINKS: [ResponseLinks; 4] = [
    ResponseLinks {
        from: "createJob",
        parameter: ("jobId", "$response.body#/jobId"),
        to: &["getJob", "getResult", "cancelJob", "releaseJob"],
    },
    ResponseLinks {
        from: "beginOperation",
        parameter: ("id", "$response.body#/operationId"),
        to: &["getOperation", "abortOperation"],
    },
    ResponseLinks {
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
    ResponseLinks {
        from: "leaseJobs",
        parameter: ("leaseToken", "$response.body#/leases/0/leaseToken"),
        to: &["completeLease", "failLease", "snoozeLease", "releaseLease", "reportProgress", "appendLogs"],
    },
];

/// Adds the links to the success responses.
pub(super) fn add_links(document: &mut Value) {
    for (_, _, operation) in super::operations(document) {
        let Some(source) = LINKS.iter().find(|source| operation["operationId"] == source.from) else { continue };
        let (name, expression) = source.parameter;
        let links: Map<String, Value> = source
            .to
            .iter()
            .map(|to| ((*to).to_owned(), json!({"operationId": to, "parameters": {name: expression}})))
            .collect();
        let responses = operation["responses"].as_object_mut().into_iter().flatten();
        for (_, response) in responses.filter(|(status, _)| status.starts_with('2')) {
            response["links"] = json!(links);
        }
    }
}
