//! Completes the schemas: rules that hold for all bodies, and constraints between fields that types do not express.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

const SCHEMAS: &str = "#/components/schemas/";

/// The variants of an item in a batch of outcomes: the name, and the body of the path with the same outcome.
const OUTCOMES: [(&str, &str); 6] = [
    ("completed", "CompleteRequest"),
    ("failed", "FailRequest"),
    ("snoozed", "SnoozeRequest"),
    ("released", "ReleaseRequest"),
    ("cancelled", "ReleaseRequest"),
    ("timed_out", "ReleaseRequest"),
];

/// Fields of a job that a schedule does not accept, because they apply to a single job.
const SINGLE_JOB_FIELDS: [&str; 5] = ["idempotencyKey", "runAt", "expiresAt", "dependsOn", "ref"];

/// Completes the schemas.
pub(super) fn complete(document: &mut Value) {
    let mut bodies = BTreeSet::new();
    for (_, _, operation) in super::operations(document) {
        for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
            // A parameter is present or absent, never null.
            remove_null(&mut parameter["schema"]);
        }
        if let Some(body) = operation.get_mut("requestBody") {
            // The same holds for a body.
            remove_null(&mut body["content"]["application/json"]["schema"]);
            collect_references(body, &mut bodies);
        }
    }
    let Some(schemas) = document["components"]["schemas"].as_object_mut() else { return };
    reference_list_items(schemas);
    flatten_views(schemas);
    constrain_jobs(schemas);
    constrain_schedules(schemas);
    constrain_redrive(schemas);
    constrain_bulk(schemas);
    constrain_outcomes(schemas);
    let bodies = reachable(bodies, schemas);
    for (name, schema) in schemas {
        if bodies.contains(name) {
            deny_unknown_fields(schema);
        } else {
            omit_null(schema);
        }
    }
}

// A list references the schema of its items instead of repeating it.
fn reference_list_items(schemas: &mut Map<String, Value>) {
    for (name, schema) in schemas {
        if let Some(item) = name.strip_prefix("ListResponse_") {
            schema["properties"]["items"]["items"] = json!({"$ref": format!("{SCHEMAS}{item}")});
        }
    }
}

// Merges the parts of a flattened type into one object.
fn flatten_views(schemas: &mut Map<String, Value>) {
    let all = schemas.clone();
    for schema in schemas.values_mut() {
        let Some(parts) = schema.get("allOf").and_then(Value::as_array).cloned() else { continue };
        let mut whole = json!({"type": "object", "properties": {}, "required": []});
        for part in &parts {
            let part = part["$ref"].as_str().and_then(|name| all.get(name.strip_prefix(SCHEMAS)?)).unwrap_or(part);
            let properties = part["properties"].as_object().cloned().unwrap_or_default();
            whole["properties"].as_object_mut().into_iter().for_each(|whole| whole.extend(properties.clone()));
            let required = part["required"].as_array().cloned().unwrap_or_default();
            whole["required"].as_array_mut().into_iter().for_each(|whole| whole.extend(required.clone()));
        }
        whole["description"] = schema["description"].take();
        *schema = whole;
    }
}

fn constrain_jobs(schemas: &mut Map<String, Value>) {
    let job = &mut schemas["JobRequest"];
    let mut of_schedule = job.clone();
    if let Some(properties) = of_schedule["properties"].as_object_mut() {
        properties.retain(|name, _| !SINGLE_JOB_FIELDS.contains(&name.as_str()));
    }
    of_schedule["description"] =
        json!("The job that each occurrence of a schedule enqueues. Only `jobType` is required.");
    job["not"] = json!({
        "required": ["delaySeconds", "runAt"],
        "properties": {"delaySeconds": {"type": "number"}, "runAt": {"type": "string"}},
    });
    schemas.insert("ScheduledJob".into(), of_schedule);
    for name in ["ScheduleRequest", "ScheduleView"] {
        schemas[name]["properties"]["job"]["$ref"] = json!(format!("{SCHEMAS}ScheduledJob"));
    }
}

fn constrain_schedules(schemas: &mut Map<String, Value>) {
    let schedule = &mut schemas["ScheduleRequest"];
    schedule["properties"]["name"] = json!({
        "oneOf": [{"type": "null"}, {"$ref": format!("{SCHEMAS}ScheduleId")}],
        "description": "Optional. Must equal the name in the path.",
    });
    schedule["oneOf"] = json!([
        {"required": ["cron"], "properties": {"cron": {"type": "string"}, "everySeconds": {"type": "null"}}},
        {
            "required": ["everySeconds"],
            "properties": {
                "everySeconds": {"type": "number"}, "cron": {"type": "null"}, "timezone": {"enum": [null, "UTC"]},
            },
        },
    ]);
}

fn constrain_redrive(schemas: &mut Map<String, Value>) {
    schemas["RedriveRequest"]["oneOf"] = json!([
        {
            "required": ["filter"],
            "properties": {
                "filter": {"type": "object", "minProperties": 1}, "all": {"enum": [false, null]},
                "jobIds": {"type": "null"},
            },
        },
        {
            "required": ["all"],
            "properties": {"all": {"const": true}, "filter": {"type": "null"}, "jobIds": {"type": "null"}},
        },
        {
            "required": ["jobIds"],
            "properties": {
                "jobIds": {"type": "array"}, "filter": {"type": "null"}, "all": {"enum": [false, null]},
                "cursor": {"type": "null"},
            },
        },
    ]);
}

// A priority belongs to one action, and selecting every job requires `all`.
fn constrain_bulk(schemas: &mut Map<String, Value>) {
    schemas["BulkRequest"]["allOf"] = json!([
        {"oneOf": [
            {"properties": {"action": {"enum": ["retry", "cancel"]}, "priority": {"type": "null"}}},
            {"required": ["priority"], "properties": {"action": {"const": "priority"}, "priority": {"type": "integer"}}},
        ]},
        {"oneOf": [
            {"required": ["filter"], "properties": {"filter": {"type": "object", "minProperties": 1}, "all": {"enum": [false, null]}}},
            {"required": ["all"], "properties": {"all": {"const": true}, "filter": {"type": "null"}}},
        ]},
    ]);
}

fn constrain_outcomes(schemas: &mut Map<String, Value>) {
    let item = schemas["OutcomeRequest"].clone();
    let variants = OUTCOMES.map(|(name, body)| {
        let mut variant = schemas[body].clone();
        variant["title"] = json!(name);
        variant["properties"]["leaseToken"] = item["properties"]["leaseToken"].clone();
        // `completed` is the default outcome.
        let is_default = name == "completed";
        variant["properties"]["outcome"] =
            if is_default { json!({"enum": [name, null]}) } else { json!({"const": name}) };
        let mut required = variant["required"].as_array().cloned().unwrap_or_default();
        required.push(json!("leaseToken"));
        required.extend((!is_default).then(|| json!("outcome")));
        variant["required"] = json!(required);
        deny_unknown_fields(&mut variant);
        variant
    });
    schemas["OutcomeRequest"] = json!({"description": item["description"], "oneOf": variants});
}

/// Collects the names of the schemas that a value references.
fn collect_references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            let name = fields.get("$ref").and_then(Value::as_str).and_then(|name| name.strip_prefix(SCHEMAS));
            found.extend(name.map(str::to_owned));
            fields.values().for_each(|value| collect_references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| collect_references(value, found)),
        _ => {}
    }
}

fn reachable(mut found: BTreeSet<String>, schemas: &Map<String, Value>) -> BTreeSet<String> {
    loop {
        let mut more = found.clone();
        for name in &found {
            collect_references(schemas.get(name).unwrap_or(&Value::Null), &mut more);
        }
        if more.len() == found.len() {
            return found;
        }
        found = more;
    }
}

// Requests reject unknown fields.
fn deny_unknown_fields(schema: &mut Value) {
    if schema["type"] == "object" && schema.get("additionalProperties").is_none() {
        schema["additionalProperties"] = json!(false);
    }
}

// Responses omit absent fields instead of sending null, except for required fields.
fn omit_null(schema: &mut Value) {
    let required: BTreeSet<String> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|name| Some(name.as_str()?.to_owned()))
        .collect();
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    properties.iter_mut().filter(|(name, _)| !required.contains(*name)).for_each(|(_, property)| remove_null(property));
}

fn remove_null(schema: &mut Value) {
    if let Some(types) = schema.get_mut("type").and_then(Value::as_array_mut) {
        types.retain(|kind| kind != "null");
        if let [only] = &types[..] {
            schema["type"] = only.clone();
        }
    }
    if let Some(variants) = schema.get_mut("oneOf").and_then(Value::as_array_mut) {
        variants.retain(|variant| variant["type"] != "null");
        if let [Value::Object(only)] = &variants[..] {
            let only = only.clone();
            if let Some(schema) = schema.as_object_mut() {
                schema.remove("oneOf");
                schema.extend(only);
            }
        }
    }
}
