//! Every error code of the API: its status and meaning, once.

use axum::http::StatusCode;

macro_rules! codes {
    ($($variant:ident, $status:ident, $name:literal, $meaning:literal;)*) => {
        /// A stable, machine-readable reason for a refusal.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code {
            $(#[doc = $meaning] $variant,)*
        }

        impl Code {
            /// All codes, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The HTTP status that goes with the code.
            pub fn status(self) -> StatusCode {
                match self { $(Self::$variant => StatusCode::$status,)* }
            }

            /// The code as clients see it.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// What it means, as a sentence.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }
        }
    };
}

codes! {
    MalformedJson, BAD_REQUEST, "malformed_json", "The body is not JSON.";
    InvalidCursor, BAD_REQUEST, "invalid_cursor", "The cursor is damaged, too old or of another list.";
    CredentialConflict, BAD_REQUEST, "credential_conflict", "Two different keys were sent.";
    InvalidEncoding, BAD_REQUEST, "invalid_encoding", "The body can't be decompressed.";
    MessagesRejected, BAD_REQUEST, "messages_rejected", "Some messages were not taken, see errors; all others were.";
    InvalidCredentials, UNAUTHORIZED, "invalid_credentials", "The credential is missing, unknown, revoked or expired.";
    SubjectTokenRequired, UNAUTHORIZED, "subject_token_required", "A write key alone does not prove who the user is.";
    SubjectTokenExpired, UNAUTHORIZED, "subject_token_expired", "The subject token is expired or revoked; start a new session.";
    IdentityRequired, UNAUTHORIZED, "identity_required", "This user is identified; the session needs an identity token or the current subject token.";
    InsufficientRole, FORBIDDEN, "insufficient_role", "The token's role in this workspace does not allow it.";
    InsufficientScope, FORBIDDEN, "insufficient_scope", "The key has not the kind or scope for it.";
    SubjectMismatch, FORBIDDEN, "subject_mismatch", "The anonymous id is not one of the token's subject.";
    ClientSessionInvalid, FORBIDDEN, "client_session_invalid", "The browser session is another user's or has ended.";
    ConsentRequired, FORBIDDEN, "consent_required", "The user has not given the consent that it takes.";
    CrossSite, FORBIDDEN, "cross_site", "Another site's page sent the request: with a session's cookie only the server's own pages may change anything.";
    NotFound, NOT_FOUND, "not_found", "There is no such thing, or not for you.";
    SubjectNotFound, NOT_FOUND, "subject_not_found", "The app has no such person.";
    CampaignNotFound, NOT_FOUND, "campaign_not_found", "The app has no such campaign.";
    MethodNotAllowed, METHOD_NOT_ALLOWED, "method_not_allowed", "The path exists, the method does not.";
    EventDefinitionExists, CONFLICT, "event_definition_exists", "The app has a definition of this name.";
    PluginVersionExists, CONFLICT, "plugin_version_exists", "The version was uploaded with other bytes; versions never change, upload a new one.";
    PluginInUse, CONFLICT, "plugin_in_use", "Something still needs the plugin or version; see detail.";
    PluginNoCandidate, CONFLICT, "plugin_no_candidate", "The plugin has no candidate to be promoted; activate a version as a shadow or a canary first.";
    PluginNoPrevious, CONFLICT, "plugin_no_previous", "The plugin has no version to go back to; activate another one.";
    IdentityKeyExists, CONFLICT, "identity_key_exists", "The app has an identity key of this kid; remove it first.";
    MutationConflict, CONFLICT, "mutation_conflict", "The mutationId was used for another update; a new update takes a new one.";
    IdentityConflict, CONFLICT, "identity_conflict", "The anonymous id belongs to another identified user; take a new one for this user.";
    DeliveryGone, CONFLICT, "delivery_gone", "There is no delivery (any more) that the dead letter is about.";
    SurveyNotActive, CONFLICT, "survey_not_active", "The survey does not run; nothing of it can be started.";
    AttemptCompleted, CONFLICT, "attempt_completed", "The attempt is complete; its answers stay as they are.";
    DecisionNotReproducible, CONFLICT, "decision_not_reproducible", "The decision can't be made again: something that it takes is gone; see detail.";
    CampaignNotTransactional, CONFLICT, "campaign_not_transactional", "Only campaigns of the mode transactional can be sent by a backend.";
    CampaignNotActive, CONFLICT, "campaign_not_active", "The campaign does not run; activate it first.";
    MessageArrived, CONFLICT, "message_arrived", "The webhook has taken the message; it is not sent again.";
    SegmentExists, CONFLICT, "segment_exists", "The app has a segment of this name.";
    SegmentInUse, CONFLICT, "segment_in_use", "Something still names the segment; see detail.";
    VersionMismatch, PRECONDITION_FAILED, "version_mismatch", "Somebody changed the resource meanwhile; read it again.";
    PayloadTooLarge, PAYLOAD_TOO_LARGE, "payload_too_large", "The body is over the limit.";
    UnsupportedMediaType, UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", "The body must be application/json, plain or compressed with gzip, zstd or br.";
    Misdirected, MISDIRECTED_REQUEST, "misdirected", "The request names another host than the server's; see detail.";
    ValidationFailed, UNPROCESSABLE_ENTITY, "validation_failed", "The request breaks the contract; see errors.";
    InvalidCredential, UNPROCESSABLE_ENTITY, "invalid_credential", "The push credential's key does not parse; see errors.";
    InvalidDelivery, UNPROCESSABLE_ENTITY, "invalid_delivery", "The delivery object breaks the contract.";
    InvalidFlow, UNPROCESSABLE_ENTITY, "invalid_flow", "The survey's flow can't be walked; see errors.";
    InvalidAnswer, UNPROCESSABLE_ENTITY, "invalid_answer", "An answer is not what its question takes, or the flow does not lead by it; see errors.";
    InstructionRequired, UNPROCESSABLE_ENTITY, "instruction_required", "A survey of this mode is started by an instruction: send its instructionId.";
    LowContrast, UNPROCESSABLE_ENTITY, "low_contrast", "Colours of the theme have too little contrast; see errors, or set `allowLowContrast` in the theme.";
    NotActivatable, UNPROCESSABLE_ENTITY, "not_activatable", "The survey or campaign can't run as it is; see errors.";
    SegmentCycle, UNPROCESSABLE_ENTITY, "segment_cycle", "A segment can't stand in itself; see errors.";
    PluginRejected, UNPROCESSABLE_ENTITY, "plugin_rejected", "The component can't be the plugin that it is asked to be; see errors.";
    ExactlyOneRecipient, UNPROCESSABLE_ENTITY, "exactly_one_recipient", "A send has exactly one of externalId and anonymousId.";
    MissingSendData, UNPROCESSABLE_ENTITY, "missing_send_data", "The campaign needs values that data has not; see errors.";
    DataNotAllowed, UNPROCESSABLE_ENTITY, "data_not_allowed", "A test send takes no data.";
    EmptyUpdate, UNPROCESSABLE_ENTITY, "empty_update", "The update neither sets nor removes anything.";
    KeyInSetAndUnset, UNPROCESSABLE_ENTITY, "key_in_set_and_unset", "A key can't be set and removed by one update; see errors.";
    WebhookUrlNotAllowed, UNPROCESSABLE_ENTITY, "webhook_url_not_allowed", "Requests may not go to the webhook's URL; see errors.";
    LimitExceeded, UNPROCESSABLE_ENTITY, "limit_exceeded", "A limit is exceeded.";
    RateLimited, TOO_MANY_REQUESTS, "rate_limited", "One request too many; the next may come after Retry-After.";
    Internal, INTERNAL_SERVER_ERROR, "internal", "A defect in the server; the request id finds it in the log.";
    Unavailable, SERVICE_UNAVAILABLE, "unavailable", "The server can't do it now; try again after Retry-After.";
}
