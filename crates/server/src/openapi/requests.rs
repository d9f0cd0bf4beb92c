//! What is true of every body that is read here, and what fields say about each other, which no type says.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

const SCHEMAS: &str = "#/components/schemas/";

/// How each item of a batch of endings may look: the word for it, and the body that the path of the same ending takes.
const ENDINGS: [(&str, &str); 6] = [
    ("completed", "CompleteRequest"),
    ("failed", "FailRequest"),
    ("snoozed", "SnoozeRequest"),
    ("released", "ReleaseRequest"),
    ("cancelled", "ReleaseRequest"),
    ("timed_out", "ReleaseRequest"),
];

/// What a job of a schedule may not say: it would make sense once, not each time.
const ONCE: [&str; 5] = ["idempotencyKey", "runAt", "expiresAt", "dependsOn", "ref"];

/// Completes the schemas.
pub(super) fn complete(document: &mut Value) {
    let mut bodies = BTreeSet::new();
    for (_, _, operation) in super::operations(document) {
        for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
            // A parameter is there or not.
            not_null(&mut parameter["schema"]);
        }
        if let Some(body) = operation.get_mut("requestBody") {
            // So is a body: `null` is not the same as none.
            not_null(&mut body["content"]["application/json"]["schema"]);
            names(body, &mut bodies);
        }
    }
    let Some(schemas) = document["components"]["schemas"].as_object_mut() else { return };
    lists(schemas);
    flatten(schemas);
    jobs(schemas);
    schedules(schemas);
    redrives(schemas);
    bulk(schemas);
    endings(schemas);
    let bodies = reachable(bodies, schemas);
    for (name, schema) in schemas {
        if bodies.contains(name) {
            refuse_unknown(schema);
        } else {
            leave_out_null(schema);
        }
    }
}

// A list of views refers to them rather than to repeat them.
fn lists(schemas: &mut Map<String, Value>) {
    for (name, schema) in schemas {
        if let Some(item) = name.strip_prefix("Listed_") {
            schema["properties"]["items"]["items"] = json!({"$ref": format!("{SCHEMAS}{item}")});
        }
    }
}

// A view that shows what was asked for and more is one object.
fn flatten(schemas: &mut Map<String, Value>) {
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

fn jobs(schemas: &mut Map<String, Value>) {
    let job = &mut schemas["JobRequest"];
    let mut of_schedule = job.clone();
    if let Some(properties) = of_schedule["properties"].as_object_mut() {
        properties.retain(|name, _| !ONCE.contains(&name.as_str()));
    }
    of_schedule["description"] = json!("A job as a schedule creates it each time. Only `jobType` is required.");
    job["not"] = json!({
        "required": ["delaySeconds", "runAt"],
        "properties": {"delaySeconds": {"type": "number"}, "runAt": {"type": "string"}},
    });
    schemas.insert("ScheduledJob".into(), of_schedule);
    for name in ["ScheduleRequest", "ScheduleView"] {
        schemas[name]["properties"]["job"]["$ref"] = json!(format!("{SCHEMAS}ScheduledJob"));
    }
}

fn schedules(schemas: &mut Map<String, Value>) {
    let schedule = &mut schemas["ScheduleRequest"];
    schedule["properties"]["name"] = json!({
        "oneOf": [{"type": "null"}, {"$ref": format!("{SCHEMAS}ScheduleId")}],
        "description": "May repeat the name in the path, and must be the same.",
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

fn redrives(schemas: &mut Map<String, Value>) {
    schemas["RedriveRequest"]["oneOf"] = json!([
        {"required": ["filter"], "properties": {"filter": {"type": "object"}, "jobIds": {"type": "null"}}},
        {"required": ["jobIds"], "properties": {"jobIds": {"type": "array"}, "filter": {"type": "null"}, "cursor": {"type": "null"}}},
    ]);
}

// An urgency goes with one action, and every job is meant only if that is said.
fn bulk(schemas: &mut Map<String, Value>) {
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

fn endings(schemas: &mut Map<String, Value>) {
    let item = schemas["OutcomeRequest"].clone();
    let variants = ENDINGS.map(|(word, body)| {
        let mut variant = schemas[body].clone();
        variant["title"] = json!(word);
        variant["properties"]["leaseToken"] = item["properties"]["leaseToken"].clone();
        // What says nothing says that it is done.
        let done = word == "completed";
        variant["properties"]["outcome"] = if done { json!({"enum": [word, null]}) } else { json!({"const": word}) };
        let mut required = variant["required"].as_array().cloned().unwrap_or_default();
        required.push(json!("leaseToken"));
        required.extend((!done).then(|| json!("outcome")));
        variant["required"] = json!(required);
        refuse_unknown(&mut variant);
        variant
    });
    schemas["OutcomeRequest"] = json!({"description": item["description"], "oneOf": variants});
}

/// The names of the schemas that something refers to.
fn names(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            let name = fields.get("$ref").and_then(Value::as_str).and_then(|name| name.strip_prefix(SCHEMAS));
            found.extend(name.map(str::to_owned));
            fields.values().for_each(|value| names(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| names(value, found)),
        _ => {}
    }
}

fn reachable(mut found: BTreeSet<String>, schemas: &Map<String, Value>) -> BTreeSet<String> {
    loop {
        let mut more = found.clone();
        for name in &found {
            names(schemas.get(name).unwrap_or(&Value::Null), &mut more);
        }
        if more.len() == found.len() {
            return found;
        }
        found = more;
    }
}

// Unknown fields are refused, by name.
fn refuse_unknown(schema: &mut Value) {
    if schema["type"] == "object" && schema.get("additionalProperties").is_none() {
        schema["additionalProperties"] = json!(false);
    }
}

// An answer leaves out what it does not have, unless it says that it is always there.
fn leave_out_null(schema: &mut Value) {
    let always: BTreeSet<String> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|name| Some(name.as_str()?.to_owned()))
        .collect();
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    properties.iter_mut().filter(|(name, _)| !always.contains(*name)).for_each(|(_, property)| not_null(property));
}

fn not_null(schema: &mut Value) {
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
