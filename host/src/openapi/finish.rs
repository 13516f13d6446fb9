//! What all operations of the description share: credentials, error responses, query parameters.
//!
//! Said here once, by rules, so that a handler's attribute names only what is its own.

use std::collections::BTreeSet;

use serde_json::Value;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{AdditionalProperties, ArrayItems, ObjectBuilder, SchemaType, Type};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{
    Components, Content, OpenApi, Ref, RefOr, Required, Response, ResponseBuilder, Schema,
};

use super::operations::{Caller, Operation as Row};
use super::{examples, shapes};

/// The one route whose credentials are in its body.
const BEACON: &str = "/v1/sdk/beacon";

/// An error response that several operations share: status, name among the components, description.
type ErrorResponse = (&'static str, &'static str, &'static str);

const BAD_REQUEST: ErrorResponse = (
    "400",
    "BadRequest",
    "The request can't be read: its JSON, encoding, cursor or credentials.",
);
const UNAUTHORIZED: ErrorResponse = (
    "401",
    "Unauthorized",
    "The credential is missing or does not work.",
);
const FORBIDDEN: ErrorResponse = (
    "403",
    "Forbidden",
    "The credential works, but not for this.",
);
const NOT_FOUND: ErrorResponse = (
    "404",
    "NotFound",
    "There is no such thing, or not for the caller.",
);
const CONFLICT: ErrorResponse = (
    "409",
    "Conflict",
    "The state of what it is about does not allow it.",
);
const PRECONDITION_FAILED: ErrorResponse = (
    "412",
    "PreconditionFailed",
    "`If-Match` names another version than the current one.",
);
const PAYLOAD_TOO_LARGE: ErrorResponse = ("413", "PayloadTooLarge", "The body is over the limit.");
const UNSUPPORTED_MEDIA_TYPE: ErrorResponse = (
    "415",
    "UnsupportedMediaType",
    "The body's media type or encoding is none of those taken.",
);
const UNPROCESSABLE: ErrorResponse = (
    "422",
    "UnprocessableEntity",
    "The request breaks the contract; `errors` says where.",
);
const TOO_MANY_REQUESTS: ErrorResponse = (
    "429",
    "TooManyRequests",
    "One request too many; the next may come after `Retry-After`.",
);
const INTERNAL: ErrorResponse = (
    "500",
    "InternalServerError",
    "A defect in the server; the request id finds it in the log.",
);
const UNAVAILABLE: ErrorResponse = (
    "503",
    "ServiceUnavailable",
    "The server can't do it now; try again after `Retry-After`.",
);

const ALL: [ErrorResponse; 12] = [
    BAD_REQUEST,
    UNAUTHORIZED,
    FORBIDDEN,
    NOT_FOUND,
    CONFLICT,
    PRECONDITION_FAILED,
    PAYLOAD_TOO_LARGE,
    UNSUPPORTED_MEDIA_TYPE,
    UNPROCESSABLE,
    TOO_MANY_REQUESTS,
    INTERNAL,
    UNAVAILABLE,
];

/// Adds to a description what all operations share, and what the server's types do not say.
///
/// # Errors
///
/// Where the description or the table of operations is no JSON.
pub fn finish(mut document: OpenApi) -> serde_json::Result<Value> {
    let rows = Row::all()?;
    if let Some(components) = &mut document.components {
        add_credentials(components);
        for refusal in ALL {
            let (_, name, _) = refusal;
            components
                .responses
                .insert(name.to_owned(), response(refusal).into());
        }
        open_parts(components);
    }
    for (path, item) in &mut document.paths.paths {
        let has_versions = item.patch.is_some();
        let operations = [
            ("get", &mut item.get),
            ("post", &mut item.post),
            ("patch", &mut item.patch),
            ("delete", &mut item.delete),
            ("put", &mut item.put),
        ];
        for (method, operation) in operations {
            if let Some(operation) = operation {
                let id = operation.operation_id.as_deref();
                let row = rows.iter().find(|row| Some(&*row.operation) == id);
                let by = row.map_or(Caller::Anyone, |row| row.by);
                complete(path, method, has_versions, by, operation);
            }
        }
    }
    let mut document = serde_json::to_value(document)?;
    shapes::add(&mut document)?;
    examples::add(&mut document, &rows)?;
    Ok(document)
}

/// `has_versions`: whether what the path names is a resource whose changes are counted.
fn complete(path: &str, method: &str, has_versions: bool, by: Caller, operation: &mut Operation) {
    for parameter in operation.parameters.iter_mut().flatten() {
        if let RefOr::T(parameter) = parameter {
            place(parameter, path);
        }
    }
    // A body that may be left out, which is an `Option` to the attributes, is no null.
    if let Some(RefOr::T(body)) = &mut operation.request_body {
        for content in body.content.values_mut() {
            if let RefOr::T(content) = content
                && let Some(schema) = &mut content.schema
            {
                take_null(schema);
            }
        }
    }
    operation.security = by.security();
    let is_change = ["patch", "delete"].contains(&method);
    let is_versioned = has_versions && is_change && by.is_person();
    if is_versioned {
        operation
            .parameters
            .get_or_insert_default()
            .push(if_match().into());
    }
    let error_responses = error_responses(path, method, operation, is_versioned);
    let responses = &mut operation.responses.responses;
    for (status, response) in responses.iter_mut() {
        if let RefOr::T(response) = response
            && response.description.is_empty()
        {
            success(status).clone_into(&mut response.description);
        }
    }
    for (status, name, _) in error_responses {
        responses
            .entry(status.to_owned())
            .or_insert_with(|| Ref::from_response_name(name).into());
    }
}

/// What an operation can be refused with, by what it takes.
fn error_responses(
    path: &str,
    method: &str,
    operation: &Operation,
    is_versioned: bool,
) -> Vec<ErrorResponse> {
    let has_body = operation.request_body.is_some();
    let has_query = operation.parameters.iter().flatten().any(|parameter| {
        matches!(parameter, RefOr::T(parameter) if parameter.parameter_in == ParameterIn::Query)
    });
    let is_secured = operation.security.is_some() || path == BEACON;
    let names_something = path.contains('{');
    let changes = method != "get";
    let takes_input = has_body || has_query || names_something;
    [
        (is_secured || takes_input, BAD_REQUEST),
        (is_secured, UNAUTHORIZED),
        (is_secured, FORBIDDEN),
        (names_something || is_secured && has_body, NOT_FOUND),
        (is_secured && changes, CONFLICT),
        (is_versioned, PRECONDITION_FAILED),
        (has_body, PAYLOAD_TOO_LARGE),
        (has_body, UNSUPPORTED_MEDIA_TYPE),
        (has_body || has_query, UNPROCESSABLE),
        (is_secured, TOO_MANY_REQUESTS),
        (is_secured || takes_input, INTERNAL),
        (true, UNAVAILABLE),
    ]
    .into_iter()
    .filter_map(|(applies, refusal)| applies.then_some(refusal))
    .collect()
}

fn response((status, _, description): ErrorResponse) -> Response {
    let mut response = ResponseBuilder::new()
        .description(format!("{description} See `code` and /v1/errors."))
        .content(
            "application/problem+json",
            Content::new(Some(Ref::from_schema_name("Problem"))),
        );
    if [TOO_MANY_REQUESTS.0, UNAVAILABLE.0].contains(&status) {
        let seconds = ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(1));
        let header = HeaderBuilder::new()
            .schema(Some(seconds))
            .description(Some("Seconds until the next try."));
        response = response.header("Retry-After", header.build());
    }
    response.build()
}

/// OpenAPI requires a description, the statuses of successes need none.
fn success(status: &str) -> &'static str {
    match status {
        "201" => "Created.",
        "202" => "Queued.",
        "204" => "Done.",
        _ => "Success.",
    }
}

/// Puts a parameter where the request has it. Query strings have an extractor of our own, which the
/// attributes do not know: they take its parameters for parts of the path, and all of those for required.
fn place(parameter: &mut Parameter, path: &str) {
    let is_in_path = path.contains(&format!("{{{}}}", parameter.name));
    if parameter.parameter_in != ParameterIn::Path || is_in_path {
        return;
    }
    parameter.parameter_in = ParameterIn::Query;
    let may_be_left_out = parameter.schema.as_mut().is_some_and(take_null);
    parameter.required = if may_be_left_out {
        Required::False
    } else {
        Required::True
    };
}

/// Takes the null out of a schema, since a query string has none, and says whether it was there.
fn take_null(schema: &mut RefOr<Schema>) -> bool {
    match schema {
        RefOr::T(Schema::Object(object)) => {
            let SchemaType::Array(types) = &mut object.schema_type else {
                return false;
            };
            let before = types.len();
            types.retain(|one| *one != Type::Null);
            let had = types.len() < before;
            if let [one] = types.as_slice() {
                object.schema_type = SchemaType::Type(one.clone());
            }
            had
        }
        RefOr::T(Schema::OneOf(one_of)) => {
            let before = one_of.items.len();
            one_of.items.retain(|item| !is_null(item));
            let had = one_of.items.len() < before;
            if let [one] = one_of.items.as_slice() {
                *schema = one.clone();
            }
            had
        }
        _ => false,
    }
}

fn is_null(schema: &RefOr<Schema>) -> bool {
    matches!(schema, RefOr::T(Schema::Object(object)) if object.schema_type == SchemaType::Type(Type::Null))
}

/// `If-Match`, which every change of a resource with a version honours (contract 0).
fn if_match() -> Parameter {
    ParameterBuilder::new()
        .name("If-Match")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(
            "The versions of which the caller expects one, in quotes.",
        ))
        .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
        .build()
}

fn add_credentials(components: &mut Components) {
    let bearer = |format: &str, description: &str| {
        let mut http = Http::new(HttpAuthScheme::Bearer);
        http.bearer_format = Some(format.to_owned());
        http.description = Some(description.to_owned());
        SecurityScheme::Http(http)
    };
    let header = |name: &str| SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new(name)));
    for (name, format, description) in [
        (
            "accessToken",
            "JWT",
            "A person's or an operator's; its roles say what it opens.",
        ),
        (
            "writeKey",
            "wk_…",
            "An app's public key, for SDKs. Their routes take it in `X-Write-Key` too.",
        ),
        (
            "serverKey",
            "sk_…",
            "A backend's key, with the scope `events.write` or `push.transactional`.",
        ),
        (
            "apiToken",
            "at_…",
            "A backend's token, with the scope `users.properties.write`.",
        ),
    ] {
        components.add_security_scheme(name, bearer(format, description));
    }
    components.add_security_scheme("subjectToken", header("X-Service-Subject-Token"));
}

/// Schemas that are part of others can't say that there are no further properties: each would refuse those
/// of the others.
fn open_parts(components: &mut Components) {
    let mut parts = BTreeSet::new();
    for schema in components.schemas.values() {
        collect_parts(schema, false, &mut parts);
    }
    for name in parts {
        if let Some(RefOr::T(Schema::Object(object))) = components.schemas.get_mut(&name) {
            object
                .additional_properties
                .take_if(|more| **more == AdditionalProperties::FreeForm(false));
        }
    }
}

/// Collects the names of schemas that others are made of. `is_part`: the schema is part of another.
fn collect_parts(schema: &RefOr<Schema>, is_part: bool, names: &mut BTreeSet<String>) {
    let (items, are_parts) = match schema {
        RefOr::Ref(reference) => {
            let name = reference.ref_location.rsplit('/').next();
            names.extend(name.filter(|_| is_part).map(str::to_owned));
            return;
        }
        RefOr::T(Schema::AllOf(all_of)) => (all_of.items.as_slice(), true),
        RefOr::T(Schema::OneOf(one_of)) => (one_of.items.as_slice(), is_part),
        RefOr::T(Schema::AnyOf(any_of)) => (any_of.items.as_slice(), is_part),
        RefOr::T(Schema::Array(array)) => match &array.items {
            ArrayItems::RefOrSchema(item) => (std::slice::from_ref(&**item), false),
            ArrayItems::False => return,
        },
        RefOr::T(Schema::Object(object)) => {
            for property in object.properties.values() {
                collect_parts(property, false, names);
            }
            return;
        }
        RefOr::T(_) => return,
    };
    for item in items {
        collect_parts(item, are_parts, names);
    }
}
