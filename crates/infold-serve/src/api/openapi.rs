//! The OpenAPI document.

mod schemas;

use serde_json::{Map, Value, json};

use super::Api;
use super::error::ApiError;
use super::reply::ApiReply;
use super::request::ApiRequest;
use super::route::{ApiRoute, Gives, QueryParameter, ROUTES, Takes};

/// `GET /infold/api/openapi.json`
pub fn document(_: &Api, _: &ApiRequest) -> Result<ApiReply, ApiError> {
    let mut paths = Map::new();
    for route in ROUTES {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_lowercase()] = operation(route);
    }
    Ok(ApiReply::Json(json!({
        "openapi": "3.1.0",
        "info": {
            "title": "infold",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Tasks: their logs, their views, and the steps on them. Lists are streamed as an array, or one object a line to who accepts application/x-ndjson.",
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{}, {"token": []}],
        "paths": paths,
        "components": {
            "schemas": schemas::all(),
            "securitySchemes": {"token": {
                "type": "apiKey", "in": "header", "name": "x-infold-token",
                "description": "The server's token, if it has one",
            }},
            "responses": {"Error": {
                "description": "It was not done, why, and what to do about it",
                "content": {"application/json": {"schema": schema("Error")}},
            }},
        },
    })))
}

fn schema(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn operation(route: &ApiRoute) -> Value {
    let places = route.path.split('/').filter_map(|part| {
        let name = part.strip_prefix('{')?.strip_suffix('}')?;
        let about = match name {
            "task" => "The task: its id, or any prefix of it that no other shares",
            _ => "A message such as 32, or a range such as 3..40",
        };
        Some(json!({
            "name": name, "in": "path", "required": true, "description": about, "schema": {"type": "string"},
        }))
    });
    let mut parameters: Vec<Value> = places.chain(route.query.iter().map(parameter)).collect();
    if route.takes == Takes::Messages {
        parameters.push(json!({
            "name": "Idempotency-Key", "in": "header",
            "description": "A name for this push, of at most 255 bytes: with the same messages it is done once, with others it is refused",
            "schema": {"type": "string", "maxLength": 255},
        }));
    }
    let mut operation = json!({
        "operationId": route.name,
        "summary": route.about,
        "parameters": parameters,
        "responses": {
            route.status.as_str(): response(route.gives),
            "default": {"$ref": "#/components/responses/Error"},
        },
    });
    if let Some(body) = body(route.takes) {
        operation["requestBody"] = body;
    }
    operation
}

fn parameter(query: &QueryParameter) -> Value {
    let schema = match query.kind {
        "integer" => json!({"type": "integer", "minimum": 1}),
        kind => json!({"type": kind}),
    };
    json!({"name": query.name, "in": "query", "description": query.about, "schema": schema})
}

fn body(takes: Takes) -> Option<Value> {
    match takes {
        Takes::Nothing => None,
        Takes::Object(name) => {
            // A body without required members is optional.
            let required = schemas::requires(name);
            Some(
                json!({"required": required, "content": {"application/json": {"schema": schema(name)}}}),
            )
        }
        Takes::Messages => Some(json!({
            "required": true,
            "description": "Messages: a JSON array of them, or each on a line",
            "content": {
                "application/json": {"schema": {"type": "array", "items": schema("Message")}},
                "application/x-ndjson": {"schema": {"type": "string"}},
            },
        })),
    }
}

fn response(gives: Gives) -> Value {
    match gives {
        Gives::Nothing => json!({"description": "Done"}),
        Gives::Text => json!({
            "description": "A text", "content": {"text/plain": {"schema": {"type": "string"}}},
        }),
        Gives::Events => json!({
            "description": "Events, each with the task and the change as its data",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }),
        Gives::Object(name) => json!({
            "description": "Done", "content": {"application/json": {"schema": schema(name)}},
        }),
        Gives::List(name) => json!({
            "description": "A list",
            "content": {
                "application/json": {"schema": {"type": "array", "items": schema(name)}},
                "application/x-ndjson": {"schema": {"type": "string"}},
            },
        }),
    }
}
