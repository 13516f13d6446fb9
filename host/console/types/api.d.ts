// Made by `npm run types` of a server's /openapi.json.
export interface paths {
    "/v1/apps": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the apps of all workspaces in which the caller has a role, newest first. */
        get: operations["list_apps"];
        put?: never;
        /** Makes an app with the default settings and no keys. */
        post: operations["create_app"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Reads an app. */
        get: operations["get_app"];
        put?: never;
        post?: never;
        /**
         * Deletes an app. Its keys, tokens and polls stop at once; on other servers of the database within `pipeline.pollMs` (250 ms).
         *     What it stored is removed by a job.
         */
        delete: operations["delete_app"];
        options?: never;
        head?: never;
        /** Changes an app (JSON merge patch). */
        patch: operations["update_app"];
        trace?: never;
    };
    "/v1/apps/{appId}/attempts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists a person's attempts at all surveys with their answers, newest first. */
        get: operations["list_attempts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/audit-log": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists what was changed in an app and which uses of keys were refused, newest first. */
        get: operations["list_audit_log"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/campaigns": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists every campaign of an app, newest first. */
        get: operations["list_campaigns"];
        put?: never;
        /** Creates a campaign; an active one runs from the answer on. */
        post: operations["create_campaign"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/campaigns/{campaignId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Reads a campaign. */
        get: operations["get_campaign"];
        put?: never;
        post?: never;
        /**
         * Permanently deletes a campaign. Of a push campaign what is queued is cancelled, and what was sent stays on record; the
         *     instructions of an in-app message go with it.
         */
        delete: operations["delete_campaign"];
        options?: never;
        head?: never;
        /**
         * Changes a campaign (JSON merge patch). What is queued waits while it is paused, and is not sent once it is
         *     archived or a draft again.
         */
        patch: operations["update_campaign"];
        trace?: never;
    };
    "/v1/apps/{appId}/campaigns/{campaignId}/analytics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Results of a campaign: in all, by variant, by what was pressed, and by the day. */
        get: operations["get_campaign_analytics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/campaigns/{campaignId}/recipients": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists who was to get a campaign and what became of it, newest first. */
        get: operations["list_campaign_recipients"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/campaigns/{campaignId}/test-send": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Sends a campaign to somebody, whatever its status: a push message to devices, an in-app message as an instruction. */
        post: operations["test_send"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/dead-letters": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists dead letters, newest first. */
        get: operations["list_dead_letters"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/dead-letters/acknowledge": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Acknowledges many dead letters: a job deletes them. */
        post: operations["acknowledge_dead_letters"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/dead-letters/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Replays many dead letters: a job, whose progress is at its route. */
        post: operations["replay_dead_letters"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/dead-letters/summary": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Counts dead letters by event name and reason, the most frequent first. */
        get: operations["summarize_dead_letters"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/dead-letters/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Reads a dead letter. */
        get: operations["get_dead_letter"];
        put?: never;
        post?: never;
        /** Acknowledges a dead letter: it is deleted. */
        delete: operations["acknowledge_dead_letter"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/dead-letters/{id}/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Replays a dead letter: the stage that failed is run again. One that was replayed before is `replayed`, and nothing is done. */
        post: operations["replay_dead_letter"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/decisions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists what trigger plugins decided, the latest first. */
        get: operations["list_decisions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/decisions/{id}/rerun": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Makes a decision again: the version that decided gets the same events, configurations and answers. Nothing
         *     takes effect.
         */
        post: operations["rerun_decision"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/event-definitions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the event definitions of an app, newest first. */
        get: operations["list_event_definitions"];
        put?: never;
        /** Declares an event definition; it is enforced from the answer on. */
        post: operations["create_event_definition"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/event-definitions/infer": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Proposes a definition from recent events. Nothing is declared. */
        post: operations["infer_event_definition"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/event-definitions/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Reads an event definition. */
        get: operations["get_event_definition"];
        put?: never;
        post?: never;
        /** Archives an event definition: it is kept, and no longer enforced. */
        delete: operations["delete_event_definition"];
        options?: never;
        head?: never;
        /** Changes an event definition (JSON merge patch). */
        patch: operations["update_event_definition"];
        trace?: never;
    };
    "/v1/apps/{appId}/event-definitions/{id}/dry-run": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Tries a definition on an event, or on what arrived lately. */
        post: operations["dry_run_event_definition"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists events of all people of an app, newest first by receipt. Where there are very many names, a page may have fewer events
         *     than its limit, or none, and still a `nextCursor`.
         */
        get: operations["list_events"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/events/stream": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Sends events of all people of an app as they are committed: server-sent events `event`, whose data is an item of the list
         *     of events. Above 50 a second it is a sample, of which `sampled` tells the `rate`. `Last-Event-ID` goes on after an event.
         */
        get: operations["stream_events"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/explain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Says why a campaign fired or did not, for an event of a subject. */
        get: operations["explain"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/gdpr/delete": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Queues the deletion of everything that is stored of a person. From then on nothing more is stored. */
        post: operations["delete_person"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/gdpr/deletions/{jobId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows how far a deletion is. */
        get: operations["get_deletion"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/gdpr/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Queues a copy of everything that is stored of a person. */
        post: operations["export_person"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/gdpr/exports/{exportId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows an export; once it is completed, with a new URL of the archive each time. */
        get: operations["get_export"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/gdpr/jobs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the deletions of an app, newest first. */
        get: operations["list_deletions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/identity-keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the identity keys of an app, newest first. */
        get: operations["list_identity_keys"];
        put?: never;
        /** Registers a public key whose identity tokens are taken from the answer on. */
        post: operations["create_identity_key"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/identity-keys/{kid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Removes a public key: identity tokens that it signed are refused at once; on other servers of the database within
         *     `pipeline.pollMs` (250 ms).
         */
        delete: operations["delete_identity_key"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/instructions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists what a person was shown or was to be shown (surveys, feedback buttons, in-app messages), newest first. */
        get: operations["list_instructions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/jobs/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows how far a job is, and what came of it. Jobs about somebody's privacy are admins'. */
        get: operations["get_job"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the keys of an app that are not revoked, newest first. */
        get: operations["list_keys"];
        put?: never;
        /** Makes a key; the answer is the only one that shows it. */
        post: operations["create_key"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/keys/{keyId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Revokes a key: it stops working at once; on other servers of the database within `pipeline.pollMs` (250 ms). */
        delete: operations["revoke_key"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/personalization/preview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Resolves a variant for somebody. Nothing is sent, and no limit is used up. */
        post: operations["preview_personalization"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/plugin-slots": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows which plugin is in which slot. */
        get: operations["list_plugin_slots"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/plugin-slots/{kind}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Puts a plugin into a slot: it decides where none is named. */
        put: operations["set_plugin_slot"];
        post?: never;
        /** Empties a slot: the server's plugin decides, or the built-in one. */
        delete: operations["clear_plugin_slot"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/plugins": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the plugins that an app can use: its own, the server's, the built-in ones. */
        get: operations["list_plugins"];
        put?: never;
        /** Uploads a version of a plugin: the body is the component, which says what it is itself. */
        post: operations["upload_plugin"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/plugins/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows a plugin with its versions. */
        get: operations["get_plugin"];
        put?: never;
        post?: never;
        /** Removes a plugin that nothing needs, with all its versions. */
        delete: operations["delete_plugin"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/plugins/{name}/activate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Brings a version into force, at once or as a candidate. The next batch of events is decided by it; what is
         *     being decided is decided by the version before.
         */
        post: operations["activate_plugin"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/plugins/{name}/logs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists what a plugin logged in the app, newest first. */
        get: operations["list_plugin_logs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/plugins/{name}/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows how the versions of a plugin fare in the app. */
        get: operations["get_plugin_metrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/plugins/{name}/promote": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Makes the candidate the active version. */
        post: operations["promote_plugin"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/plugins/{name}/rollback": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Gives the candidate up, or without one brings back the version before. */
        post: operations["roll_back_plugin"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/plugins/{name}/versions/{version}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows a version of a plugin. */
        get: operations["get_plugin_version"];
        put?: never;
        post?: never;
        /** Removes a version that is not in force. */
        delete: operations["delete_plugin_version"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/plugins/{name}/versions/{version}/backtest": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Runs recorded events through a version and the active one, and compares what they decide. */
        post: operations["backtest_plugin_version"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/plugins/{name}/versions/{version}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Runs cases against a version of a plugin, under the limits of every call. Nothing takes effect. */
        post: operations["test_plugin_version"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/push/credentials": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the push credentials of an app, newest first. */
        get: operations["list_push_credentials"];
        put?: never;
        /** Stores a push credential. Of a platform and environment the newest is used. */
        post: operations["create_push_credential"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/push/credentials/{credId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Removes a push credential; the one before it is used again. */
        delete: operations["delete_push_credential"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/push/deliveries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists deliveries, newest first. */
        get: operations["list_deliveries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/push/deliveries/{deliveryId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Reads a delivery. */
        get: operations["get_delivery"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/push/transactional": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Queues a message to one person. That it is queued does not say that a provider has it. */
        post: operations["send_transactional"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/push/webhooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the webhooks of an app, newest first. */
        get: operations["list_webhooks"];
        put?: never;
        /** Subscribes an endpoint to what becomes of push deliveries. The answer has its secret, this once. */
        post: operations["create_webhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/push/webhooks/{webhookId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Reads a webhook. */
        get: operations["get_webhook"];
        put?: never;
        post?: never;
        /** Removes a webhook, with everything that was to be sent to it. */
        delete: operations["delete_webhook"];
        options?: never;
        head?: never;
        /**
         * Changes a webhook (JSON merge patch). What waits to be sent goes to the new URL; to one that is not active
         *     nothing is sent, and nothing new is kept for it.
         */
        patch: operations["update_webhook"];
        trace?: never;
    };
    "/v1/apps/{appId}/push/webhooks/{webhookId}/attempts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the times that messages were sent to a webhook, newest first; for 14 days. */
        get: operations["list_webhook_attempts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/push/webhooks/{webhookId}/enable": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Lets a webhook begin anew that was disabled because it only failed. What happened meanwhile is kept for
         *     `recover`.
         */
        post: operations["enable_webhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/push/webhooks/{webhookId}/messages/{messageId}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sends one message again that has not arrived: one that failed for good, was kept while the webhook was disabled, or
         *     waits for its next attempt. It keeps its id.
         */
        post: operations["retry_webhook_message"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/push/webhooks/{webhookId}/recover": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Sends again what never arrived at a webhook: what failed for good, and what was kept while it was disabled. */
        post: operations["recover_webhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/push/webhooks/{webhookId}/rotate-secret": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Gives a webhook another secret, which the answer has, this once. The old one signs beside it for a while. */
        post: operations["rotate_webhook_secret"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/push/webhooks/{webhookId}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sends the event `ping` to a webhook now, once, and tells what was answered. It says nothing of the webhook's
         *     health and is not in the log of attempts.
         */
        post: operations["test_webhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/segments": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists an app's segments, newest first. */
        get: operations["list_segments"];
        put?: never;
        /** Creates a segment. Who is in it is found out at once; of many people that goes on after the answer. */
        post: operations["create_segment"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/segments/preview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Tries conditions: who would be in the segment. */
        post: operations["preview_segment"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/segments/{segmentId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows a segment. */
        get: operations["get_segment"];
        put?: never;
        post?: never;
        /** Deletes a segment that nothing names. */
        delete: operations["delete_segment"];
        options?: never;
        head?: never;
        /** Changes a segment (JSON merge patch). Whoever is in it or out of it by a change of its conditions has neither entered nor left. */
        patch: operations["update_segment"];
        trace?: never;
    };
    "/v1/apps/{appId}/segments/{segmentId}/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the sizes of a segment, one a day, the oldest first. */
        get: operations["list_segment_history"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/segments/{segmentId}/members": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the members of a segment, newest people first. */
        get: operations["list_segment_members"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/settings": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Reads an app's settings. */
        get: operations["get_settings"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /** Changes an app's settings (JSON merge patch); they hold from the answer on. */
        patch: operations["update_settings"];
        trace?: never;
    };
    "/v1/apps/{appId}/stats": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Counts what happened in an app over time. */
        get: operations["get_stats"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/surveys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists every survey of an app, newest first. */
        get: operations["list_surveys"];
        put?: never;
        /** Creates a survey; an active one runs from the answer on. */
        post: operations["create_survey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/surveys/{surveyId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Reads a survey. */
        get: operations["get_survey"];
        put?: never;
        post?: never;
        /** Permanently deletes a survey and what depends on it. */
        delete: operations["delete_survey"];
        options?: never;
        head?: never;
        /** Changes a survey (JSON merge patch). Delivery stops when it is no longer active. */
        patch: operations["update_survey"];
        trace?: never;
    };
    "/v1/apps/{appId}/surveys/{surveyId}/analytics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Results of a survey: totals, how far people came, and what they answered. */
        get: operations["get_survey_analytics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/surveys/{surveyId}/attempts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists attempts with their answers, newest first. */
        get: operations["list_survey_attempts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/surveys/{surveyId}/attempts/{attemptId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Reads an attempt with its answers. */
        get: operations["get_survey_attempt"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/surveys/{surveyId}/recipients": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists who was to get a survey and what became of it, newest first. */
        get: operations["list_survey_recipients"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/surveys/{surveyId}/responses": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists answers, newest first. */
        get: operations["list_survey_responses"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/users": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists people, or searches them. */
        get: operations["list_users"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/users/properties": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows the person of the anonymous id `properties`, whose path is that of updates too. */
        get: operations["get_user_called_properties"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /** Updates the properties of any person of the app, from the customer's backend. */
        patch: operations["update_user_properties"];
        trace?: never;
    };
    "/v1/apps/{appId}/users/{anonymousId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows a person, found by any anonymous id or by the external id. */
        get: operations["get_user"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/users/{anonymousId}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists a person's events under all ids, newest first. */
        get: operations["list_user_events"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{appId}/users/{anonymousId}/plugin-state": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows what trigger plugins keep of a person: states and timers, by campaign. */
        get: operations["get_plugin_state"];
        put?: never;
        post?: never;
        /**
         * Erases what trigger plugins keep of a person. Campaigns begin with the person as if they were new. An id that is one
         *     person's anonymous id and another one's external id names neither: `idKind` says which is meant.
         */
        delete: operations["erase_plugin_state"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/batch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Takes a batch of messages from clients that drop the path of their host, as `@segment/analytics-node` does. */
        post: operations["collect_batch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/compat/beacon/v1/batch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Takes a batch of a page that goes away, as `RudderStack`'s client for browsers sends it with `useBeacon`. A beacon has no
         *     headers of its own, so its key is in the URL, where only a public write key may be.
         */
        post: operations["collect_beacon"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/compat/v1/{kind}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Takes messages of the tracking protocol that Segment's and `RudderStack`'s clients speak: their host is this server's URL
         *     with `/v1/compat`. `kind` is track, identify, page, screen, alias, group or batch, or the first letter of one; some clients call
         *     a batch import. With a public write key, only what is anonymous is taken, unless the app has `settings.ingest.allowUnverifiedServerEvents`.
         */
        post: operations["collect_messages"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/errors": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists every error code with its status and meaning. Codes of events that are rejected in the answer of an ingest that
         *     succeeds have its status.
         */
        get: operations["list_errors"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/exports/{exportId}/archive": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Downloads an archive: a zip file of JSON files, and of `.ndjson` files with an object on each line. The URL is the credential;
         *     one that is not good is that of nothing.
         */
        get: operations["download_export"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/audit-log": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists what operators and the server itself did with the server's plugins, newest first. */
        get: operations["list_server_audit_log"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/plugin-slots": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows which plugin is in which slot of the apps that have none of their own in it. */
        get: operations["list_server_plugin_slots"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/plugin-slots/{kind}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Puts a plugin into a slot of every app that has none of its own in it. */
        put: operations["set_server_plugin_slot"];
        post?: never;
        /** Empties a slot: the built-in plugin decides in every app that has none of its own in it. */
        delete: operations["clear_server_plugin_slot"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/plugins": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the server's plugins and the built-in ones. */
        get: operations["list_server_plugins"];
        put?: never;
        /** Uploads a version of a plugin: the body is the component, which says what it is itself. */
        post: operations["upload_server_plugin"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/plugins/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows a plugin with its versions. */
        get: operations["get_server_plugin"];
        put?: never;
        post?: never;
        /** Removes a plugin that nothing needs, with all its versions. */
        delete: operations["delete_server_plugin"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/plugins/{name}/activate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Brings a version into force, at once or as a candidate. The next batch of events is decided by it; what is
         *     being decided is decided by the version before.
         */
        post: operations["activate_server_plugin"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/plugins/{name}/logs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists what a plugin logged in all apps, newest first. */
        get: operations["list_server_plugin_logs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/plugins/{name}/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows how the versions of a plugin fare in all apps. */
        get: operations["get_server_plugin_metrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/plugins/{name}/promote": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Makes the candidate the active version. */
        post: operations["promote_server_plugin"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/plugins/{name}/rollback": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Gives the candidate up, or without one brings back the version before. */
        post: operations["roll_back_server_plugin"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/plugins/{name}/versions/{version}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows a version of a plugin. */
        get: operations["get_server_plugin_version"];
        put?: never;
        post?: never;
        /** Removes a version that is not in force. */
        delete: operations["delete_server_plugin_version"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/plugins/{name}/versions/{version}/backtest": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Runs an app's recorded events through a version and the active one, and compares what they decide. */
        post: operations["backtest_server_plugin_version"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/plugins/{name}/versions/{version}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Runs cases against a version of a plugin, under the limits of every call. Nothing takes effect. */
        post: operations["test_server_plugin_version"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sdk/attempts/{attemptId}/answers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Takes answers, and says what is next. The last word on a question counts, until the attempt is complete. */
        post: operations["answer_attempt"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sdk/attempts/{attemptId}/complete": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Completes an attempt. Saying it again changes nothing. */
        post: operations["complete_attempt"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sdk/attempts/{attemptId}/dismiss": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Ends an attempt that the person closed. Saying it again changes nothing. */
        post: operations["dismiss_attempt"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sdk/beacon": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Takes events of a page that goes away: a request that browsers send without a preflight. The first line of the body has the
         *     credentials, `{"writeKey": …, "subjectToken": …}`; the rest is the body of `POST /v1/sdk/ingest`.
         */
        post: operations["ingest_beacon"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sdk/consent": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Gives or refuses consent. */
        post: operations["update_consent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sdk/ingest": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Takes events. 200 means that the accepted ones are on disk. With `settings.ingest.allowUnverifiedServerEvents`, the server-side
         *     shape takes a write key alone too.
         */
        post: operations["ingest_events"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sdk/instructions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Gets the instructions on offer; waits for one if asked to. */
        get: operations["poll_instructions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sdk/instructions/ack": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Says what became of instructions. Saying it again changes nothing. */
        post: operations["acknowledge_instructions"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sdk/push-tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Registers where a device of the subject is reached. The token is the subject's from then on, and nobody else's. */
        post: operations["register_push_token"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sdk/push-tokens/{deviceId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Forgets where a device is reached. */
        delete: operations["remove_push_token"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sdk/push/receipts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Says what became of messages on a device. Saying it again changes nothing. */
        post: operations["send_receipts"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sdk/session": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Starts a session: an SDK's first call. */
        post: operations["start_session"];
        /** Ends a session: the tokens of its anonymous id stop working at once. */
        delete: operations["end_session"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sdk/surveys/{surveyId}/attempts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Starts an attempt. With an instruction, or the SDK's own id of the attempt, a repetition finds what the first
         *     request started.
         */
        post: operations["start_attempt"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sdk/user-properties": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Updates the properties of an SDK's own subject. */
        post: operations["update_own_properties"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export interface webhooks {
    bounced: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** `bounced` */
        post: operations["webhook_bounced"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    clicked: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** `clicked` */
        post: operations["webhook_clicked"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "dead_letter.created": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** `dead_letter.created` */
        post: operations["webhook_dead_letter_created"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    delivered: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** `delivered` */
        post: operations["webhook_delivered"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    dismissed: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** `dismissed` */
        post: operations["webhook_dismissed"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    displayed: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** `displayed` */
        post: operations["webhook_displayed"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    failed: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** `failed` */
        post: operations["webhook_failed"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    opened: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** `opened` */
        post: operations["webhook_opened"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "plugin.degraded": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** `plugin.degraded` */
        post: operations["webhook_plugin_degraded"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "plugin.rolled_back": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** `plugin.rolled_back` */
        post: operations["webhook_plugin_rolled_back"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    sent: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** `sent` */
        post: operations["webhook_sent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export interface components {
    schemas: {
        /** @description What became of one instruction. */
        Ack: {
            /** @description The button that was pressed, of `clicked`: 1 to 64 characters. */
            actionId?: string | null;
            /** @description When, ISO 8601; now unless given. Before the instruction was made is when it was made. */
            at?: string | null;
            /** Format: uuid */
            instructionId: string;
            status: components["schemas"]["AckStatus"];
        };
        /** @description What became of instructions. */
        AckRequest: {
            acks: components["schemas"]["Ack"][];
            anonymousId: string;
        };
        /**
         * @description What an SDK can say of an instruction.
         * @enum {string}
         */
        AckStatus: "received" | "displayed" | "dismissed" | "clicked" | "completed" | "discarded";
        /** @description Which acknowledgements were taken. */
        AckView: {
            accepted: number;
            unknown: string[];
        };
        /**
         * @description What opening a message does.
         * @enum {string}
         */
        Action: "none" | "open_app" | "url" | "deep_link" | "json";
        /** @description How often something was pressed. */
        ActionCounts: {
            actionId: string;
            /** Format: int64 */
            clicked: number;
        };
        /** @description How a version comes into force. */
        ActivateRequest: {
            /**
             * Format: int32
             * @description How many of a hundred subjects a canary decides about, 1 to 100.
             */
            percent?: number | null;
            /** @description Whether the plugin is put into its kind's slot too. */
            slot?: boolean;
            /** @description `instant` unless given. */
            strategy?: components["schemas"]["StrategyName"];
            /** @description The version. */
            version: string;
        };
        /** @description What is active after a change. */
        ActivationView: {
            activeVersion?: string | null;
            name: string;
            rollout?: components["schemas"]["RolloutView"] | null;
        };
        /**
         * @description What becomes of properties that a definition does not name.
         * @enum {string}
         */
        AdditionalProperties: "allow" | "reject";
        /** @description One option, of a single choice. */
        AnswerChoice: {
            /** @description The option. */
            optionId: string;
        };
        /** @description Several options, of a multiple or picture choice; all of them in their order, of a ranking. */
        AnswerChoices: {
            /** @description The options, each once. */
            optionIds: string[];
            /** @description Words of one's own. */
            other?: string;
        };
        /** @description A column's id for each row's, of a matrix; a text for each field's id, of contact information. */
        AnswerFields: {
            [key: string]: string;
        };
        /** @description Words of one's own, of a choice that takes them. */
        AnswerOther: {
            /** @description The words. */
            other: string;
        };
        /** @description An answer of several parts. */
        AnswerParts: components["schemas"]["AnswerChoice"] | components["schemas"]["AnswerOther"] | components["schemas"]["AnswerChoices"] | components["schemas"]["AnswerFields"];
        /** @description An answer. */
        AnswerRequest: {
            /** @description When it was given; now unless said. Before the attempt's instruction was made is when that was made. */
            answeredAt?: string | null;
            questionId: string;
            /** @description As the question's type takes it; null passes over a question that is not required. At most 256 KiB of JSON. */
            value: components["schemas"]["AnswerValue"];
        };
        /** @description An answer, as the question's type takes it. */
        AnswerValue: null | number | string | true | components["schemas"]["AnswerParts"];
        /** @description An answer. */
        AnswerView: {
            answerValue: components["schemas"]["AnswerValue"];
            answeredAt: string;
            /** Format: uuid */
            attemptId: string;
            /** Format: uuid */
            campaignId: string;
            questionId: string;
        };
        /** @description Answers. */
        AnswersRequest: {
            /** @description One of the subject's anonymous ids. */
            anonymousId: string;
            /** @description 1 to 200 answers; all are taken, or none. */
            answers: components["schemas"]["AnswerRequest"][];
        };
        /** @description A campaign of either type as the API shows it. */
        AnyCampaignView: components["schemas"]["PushCampaignView"] | components["schemas"]["InAppView"];
        /** @description A test of a campaign of either type. */
        AnyTestView: components["schemas"]["TestSendView"] | components["schemas"]["InAppTestView"];
        /** @description Counts over time. */
        AppStatsView: {
            from: string;
            interval: components["schemas"]["Interval"];
            /** @description One for each interval, the oldest first. */
            items: components["schemas"]["IntervalView"][];
            to: string;
            totals: components["schemas"]["Counts"];
        };
        /** @description An app. */
        AppView: {
            createdAt: string;
            /** Format: uuid */
            id: string;
            name: string;
            /** @description When the app, or something that its decisions rest on, changed last. */
            updatedAt: string;
            /**
             * Format: int64
             * @description Grows with each change of the app itself.
             */
            version: number;
            /** Format: uuid */
            workspaceId: string;
        };
        /** @description An attempt with its answers. */
        AttemptDetail: {
            answers: components["schemas"]["AnswerView"][];
            /** Format: uuid */
            attemptId: string;
            completedAt?: string | null;
            /** Format: uuid */
            instructionId?: string | null;
            lastQuestionId?: string | null;
            startedAt: string;
            state: string;
            /** Format: uuid */
            subjectId: string;
            /** Format: uuid */
            surveyId: string;
            /** Format: int64 */
            surveyVersion: number;
        };
        /** @description An attempt, and what is next. */
        AttemptView: {
            /** Format: uuid */
            attemptId: string;
            completedAt?: string | null;
            /** @description `{questionId}`, `{endScreenId}`, or null at the end of a survey without end screens. */
            next: components["schemas"]["FlowStep"] | null;
            startedAt: string;
            /** @description `started`, `completed`, or `abandoned` until the next answer. */
            state: string;
            /** @description What to show, where no instruction fixes it. */
            survey?: components["schemas"]["SurveyPayload"] | null;
            /** Format: uuid */
            surveyId: string;
            /** Format: int64 */
            surveyVersion: number;
        };
        /** @description Whom it is for. Plugins of trigger logic may read further members. */
        Audience: {
            /** @description Who is left out. */
            exclude?: components["schemas"]["AudienceCondition"];
            /** @description Who is meant; everybody unless given. */
            include?: components["schemas"]["AudienceCondition"];
            /** @description The share of people, always the same ones of a campaign. */
            samplePercent?: number;
        };
        /** @description A condition on a person, by its `kind`, or a group of conditions; nested to a depth of 4, 50 conditions at the most, those of segments included. */
        AudienceCondition: components["schemas"]["PropertyCondition"] | components["schemas"]["EventCondition"] | components["schemas"]["FactCondition"] | components["schemas"]["VersionCondition"] | components["schemas"]["SeenCondition"] | components["schemas"]["SurveyCondition"] | components["schemas"]["MessageCondition"] | components["schemas"]["SegmentCondition"] | components["schemas"]["AudienceGroup"];
        /** @description A condition on a person, by its `kind`, or a group of conditions; nested to a depth of 4, 50 conditions at the most, those of segments included. */
        AudienceConditionPatch: components["schemas"]["PropertyConditionPatch"] | components["schemas"]["EventConditionPatch"] | components["schemas"]["FactConditionPatch"] | components["schemas"]["VersionConditionPatch"] | components["schemas"]["SeenConditionPatch"] | components["schemas"]["SurveyConditionPatch"] | components["schemas"]["MessageConditionPatch"] | components["schemas"]["SegmentConditionPatch"] | components["schemas"]["AudienceGroupPatch"];
        /** @description A group of conditions; one without any holds. */
        AudienceGroup: {
            /** @description All of these hold. */
            all?: components["schemas"]["AudienceCondition"][];
            /** @description One of these holds. */
            any?: components["schemas"]["AudienceCondition"][];
        };
        /** @description A group of conditions; one without any holds. */
        AudienceGroupPatch: {
            /** @description All of these hold. */
            all?: components["schemas"]["AudienceCondition"][] | null;
            /** @description One of these holds. */
            any?: components["schemas"]["AudienceCondition"][] | null;
        };
        /** @description Whom it is for. Plugins of trigger logic may read further members. */
        AudiencePatch: {
            /** @description Who is left out. */
            exclude?: components["schemas"]["AudienceConditionPatch"] | null;
            /** @description Who is meant; everybody unless given. */
            include?: components["schemas"]["AudienceConditionPatch"] | null;
            /** @description The share of people, always the same ones of a campaign. */
            samplePercent?: number | null;
        };
        /** @description An attempt that an instruction authorizes. */
        AuthorizedAttempt: {
            /** Format: uuid */
            attemptId: string;
            expiresAt: string;
        };
        /** @description An update that a backend sends. */
        BackendUpdate: {
            subject: components["schemas"]["Reference"];
            update: components["schemas"]["UpdateBody"];
        };
        /** @description What to run through a version. */
        BacktestRequest: {
            /**
             * Format: uuid
             * @description The only campaign to look at, whichever plugin decides about it; every campaign that this plugin decides
             *     about unless given.
             */
            campaignId?: string | null;
            /**
             * Format: int64
             * @description How many events to run at the most, 1 to 1,000,000; 100,000 unless given.
             */
            limit?: number | null;
            /** @description Events that arrived at or after: an ISO 8601 instant, or a day (UTC). */
            since: string;
            /** @description Events that arrived before: an ISO 8601 instant; or a day, which is included; now unless given. */
            until?: string | null;
        };
        /** @description The job that does it. */
        BacktestView: {
            /** Format: uuid */
            jobId: string;
        };
        /** @description How often there is a value. */
        Bar: {
            /**
             * Format: int64
             * @description How often.
             */
            count: number;
            /**
             * Format: double
             * @description Of all answers to the question, 0 to 1.
             */
            share: number;
            /** @description The value. */
            value: unknown;
        };
        /** @description What a proposal was made from. */
        BasisView: {
            /** @description Whether these are all in the time asked for. */
            complete: boolean;
            /** @description Events of the name. */
            events: number;
            /** @description Properties that a definition can't describe: of several types, objects or lists, and those past the 256th. */
            leftOut: string[];
            /**
             * Format: int64
             * @description Events of the server that were looked at to find them, from the newest on.
             */
            lookedAt: number;
        };
        /**
         * @description What a person did with a message.
         * @enum {string}
         */
        BeaconType: "displayed" | "opened" | "clicked" | "dismissed";
        /**
         * @description The type of a binding.
         * @enum {string}
         */
        BindingType: "string" | "number" | "boolean" | "date";
        /** @description What a binding stands for. */
        BindingView: {
            id: string;
            source: components["schemas"]["SourceView"];
            type: components["schemas"]["BindingType"];
            usedFallback: boolean;
            value?: unknown;
        };
        /** @description A condition on a boolean. */
        BooleanFilter: {
            /**
             * @description How the property is compared; `is_set` and `is_not_set` take no `value`.
             * @enum {string}
             */
            operator: "is" | "is_set" | "is_not_set";
            /** @description The property; nested ones by dots, `cart.total`. A value of another type is no match. */
            property: string;
            /**
             * @description The type that the property must have.
             * @constant
             */
            type: "boolean";
            /** @description True or false. */
            value?: boolean;
        };
        /** @description A condition on a boolean. */
        BooleanFilterPatch: {
            /** @description How the property is compared; `is_set` and `is_not_set` take no `value`. */
            operator?: ("is" | "is_set" | "is_not_set") | null;
            /** @description The property; nested ones by dots, `cart.total`. A value of another type is no match. */
            property?: string | null;
            /** @description The type that the property must have. */
            type?: "boolean" | null;
            /** @description True or false. */
            value?: boolean | null;
        };
        /** @description A way from one question to another. */
        Branch: {
            /** @description The question that it leaves. */
            from: string;
            /** @description Its id within the flow. */
            id: string;
            /** @description Where it leads. */
            to: components["schemas"]["Target"];
            /** @description When it is taken; null is always. */
            when?: components["schemas"]["FlowCondition"] | null;
        };
        /** @description Which letters to acknowledge. */
        BulkAcknowledgeRequest: {
            filter: components["schemas"]["FilterRequest"];
        };
        /** @description Which letters to replay, and how. */
        BulkReplayRequest: {
            filter: components["schemas"]["FilterRequest"];
            /**
             * @description A merge patch (RFC 7396) on the events' properties. Only events that broke their definition are replayed
             *     then: the others were accepted as they are.
             */
            patch?: {
                [key: string]: unknown;
            } | null;
        };
        /** @description A button of an end screen. */
        Button: {
            /** @description What it does. */
            action: components["schemas"]["ButtonAction"];
            /** @description What it says. */
            label: string;
            /** @description Where it leads, unless it only closes. */
            url?: string | null;
        };
        /**
         * @description What a button does.
         * @enum {string}
         */
        ButtonAction: "close" | "url" | "deep_link";
        /**
         * @description What is written of a campaign, by its `type`; that of a push campaign may be left out. It describes the body, which is
         *     read by its type.
         */
        CampaignContent: components["schemas"]["Content"] | components["schemas"]["InAppContent"];
        /** @description What became of messages. */
        CampaignCounts: {
            /**
             * Format: int64
             * @description Of how many a button was pressed.
             */
            clicked: number;
            /**
             * Format: int64
             * @description How many in-app messages were completed.
             */
            completed?: number | null;
            /**
             * Format: int64
             * @description How many a push service took.
             */
            delivered?: number | null;
            /**
             * Format: int64
             * @description How many were closed.
             */
            dismissed: number;
            /**
             * Format: int64
             * @description How many were seen.
             */
            displayed: number;
            /**
             * Format: int64
             * @description How many push messages could not be delivered.
             */
            failed?: number | null;
            /**
             * Format: int64
             * @description How many push messages were opened.
             */
            opened?: number | null;
            /**
             * Format: int64
             * @description How many were made.
             */
            recipients: number;
            /**
             * Format: int64
             * @description How many were handed to a push service.
             */
            sent?: number | null;
            /**
             * Format: int64
             * @description How many times a firing was held back; a reason is noted once a day and person. Of push campaigns also how many of
             *     the messages that were made were skipped or cancelled.
             */
            suppressed: number;
        };
        /**
         * @description The kind of a campaign. The route is there for other kinds too.
         * @enum {string}
         */
        CampaignKind: "push";
        /**
         * @description How a campaign finds its people.
         * @enum {string}
         */
        CampaignMode: "transactional" | "triggered" | "scheduled" | "broadcast";
        /** @description What became of a campaign. */
        CampaignReport: {
            /** @description What was pressed, the most frequent first. Devices tell it of in-app messages. */
            perAction: components["schemas"]["ActionCounts"][];
            perVariant: components["schemas"]["VariantCounts"][];
            /** @description By the day, as far as there is something to count. */
            series: components["schemas"]["DayCounts"][];
            totals: components["schemas"]["CampaignCounts"];
        };
        /**
         * @description Where a campaign stands. Every status may follow every other.
         * @enum {string}
         */
        CampaignStatus: "draft" | "active" | "paused" | "completed" | "archived";
        /** @description What one campaign's plugin keeps of a person. */
        CampaignView: {
            /** @description How long the state is. */
            bytes: number;
            /** Format: uuid */
            campaignId: string;
            /** @description Base64. Absent: it keeps timers only. */
            state?: string | null;
            /** @description The state, where it is JSON. */
            stateJson?: unknown;
            timers: components["schemas"]["TimerView"][];
            updatedAt?: string | null;
        };
        /** @description An event that cancels a firing that waits for its delay. */
        Cancellation: {
            /** @description The event. */
            eventName: string;
            /** @description Only where its properties are so. */
            filters?: components["schemas"]["Filter"];
        };
        /** @description A number in a window of days. */
        Cap: {
            /**
             * Format: int64
             * @description How many.
             */
            max: number;
            /**
             * Format: int64
             * @description In how many days.
             */
            windowDays: number;
        };
        /** @description A number in a window of days. */
        CapPatch: {
            /**
             * Format: int64
             * @description How many.
             */
            max?: number | null;
            /**
             * Format: int64
             * @description In how many days.
             */
            windowDays?: number | null;
        };
        /** @description One case. */
        Case: {
            /** @description Where editors find the schema; read by nothing here. */
            $schema?: string | null;
            /** @description The part of the output that matters. None: the case only shows what comes out. */
            expect?: components["schemas"]["CaseExpectation"] | null;
            /** @description What the plugin is given, by its kind. */
            input: components["schemas"]["CaseInput"];
            /** @description For people; may be empty. */
            name?: string;
        };
        /** @description The part of the output that matters: keys that are not here are not compared, arrays are compared whole, and null also stands for what is not there. */
        CaseExpectation: components["schemas"]["CaseFired"] | components["schemas"]["CaseViolations"] | components["schemas"]["CaseValues"] | components["schemas"]["CaseProblems"] | components["schemas"]["CaseFailure"];
        /** @description platform, country, locale, app_version, external_id; identified, event_count, first_seen_at and last_seen_at follow from the events unless given. */
        CaseFacts: Record<string, never>;
        /** Output where a call fails */
        CaseFailure: {
            detail?: string;
            /** @enum {unknown} */
            failure: "trap" | "deadline" | "memory" | "output_too_large" | "refused";
        };
        /** Output of a trigger plugin */
        CaseFired: {
            /** @description What the plugin explained: event or timer, subject, check, passed, detail. */
            explanations?: unknown[];
            /** @description Every firing, in order. */
            fired?: {
                at?: components["schemas"]["CaseWhen"];
                /** @description The number of the event that fired, from 0. */
                event?: number;
                subject?: string;
                /** @description Or the key of the timer. */
                timer?: string;
            }[];
            /** @description What is kept of each subject at the end. */
            states?: Record<string, never>;
            /** @description The timers that are left at the end: subject, key, at, payload. */
            timers?: unknown[];
        };
        /** @description Events of before the start. */
        CaseHistory: {
            /** @description Like -30m, or an instant. */
            at: string;
            name: string;
            properties?: Record<string, never>;
        }[];
        /** @description The input of the plugin's kind. */
        CaseInput: components["schemas"]["CaseTrigger"] | components["schemas"]["CaseValidation"] | components["schemas"]["CasePersonalization"];
        /** Format: date-time */
        CaseInstant: string;
        /** Input of a personalization plugin */
        CasePersonalization: {
            /** @description The variant's `personalization`. */
            config?: unknown;
            now?: components["schemas"]["CaseInstant"];
            recipients: {
                /** @description The data of the request that asks for the send. */
                data?: Record<string, never>;
                facts?: components["schemas"]["CaseFacts"];
                history?: components["schemas"]["CaseHistory"];
                /** @description Under which the output has the values. */
                name: string;
                /** @description Saved properties. */
                properties?: Record<string, never>;
                /** @description Properties of the event that caused the message. */
                trigger?: Record<string, never>;
                withheld?: components["schemas"]["CaseWithheld"];
            }[];
        };
        /** Output where the configuration is refused */
        CaseProblems: {
            problems: Record<string, never>[];
        };
        CaseSubject: {
            facts?: components["schemas"]["CaseFacts"];
            history?: components["schemas"]["CaseHistory"];
            /** @description Saved properties. */
            properties?: Record<string, never>;
            withheld?: components["schemas"]["CaseWithheld"];
        };
        /** Input of a trigger plugin */
        CaseTrigger: {
            /** @description The campaign's configuration. */
            config?: unknown;
            /** @description What happens, in order. Consecutive events of one instant are one batch. */
            events: {
                /** @description Without it, the instant of the event before. */
                at?: components["schemas"]["CaseWhen"];
                name: string;
                properties?: Record<string, never>;
                subject?: string;
            }[];
            /** @description The start, 2026-01-01T00:00:00Z unless given; offsets like +30m count from here. */
            now?: components["schemas"]["CaseInstant"];
            /** @description The subject of events that name none. */
            subject?: components["schemas"]["CaseSubject"];
            subjects?: {
                [key: string]: components["schemas"]["CaseSubject"];
            };
            /** @description When time ends. Without it, time passes until no timer is left, at most 90 days. */
            until?: components["schemas"]["CaseWhen"];
        };
        /** Input of a validation plugin */
        CaseValidation: {
            /** @description The definition's configuration. */
            config?: unknown;
            now?: components["schemas"]["CaseInstant"];
            /** @description The event's properties. */
            properties: Record<string, never>;
        };
        /** Output of a personalization plugin */
        CaseValues: {
            /** @description By recipient and binding: value, text, usedFallback, issue, detail. */
            values: {
                [key: string]: {
                    [key: string]: Record<string, never>;
                };
            };
        };
        /** @description What became of a case. */
        CaseView: {
            /** @description Why the call failed, for a person. */
            detail?: string | null;
            /** @description Where the output is not as expected. */
            differences?: components["schemas"]["Difference"][];
            /** @description `trap`, `deadline`, `memory`, `output_too_large` or `refused`. */
            failure?: string | null;
            logs?: components["schemas"]["LogView"][];
            /** @description The most memory that any of them had. */
            memoryBytes: number;
            /**
             * Format: int64
             * @description What all decisions of the case took.
             */
            micros: number;
            name?: string;
            /** @description What the plugin decided. Absent: a call failed. */
            output?: unknown;
            /** @description Absent: the case expects nothing. */
            passed?: boolean | null;
            /** @description Where a second run of the same case gave something else: the plugin is not deterministic. */
            unsteady?: components["schemas"]["Difference"][];
        };
        /** Output of a validation plugin */
        CaseViolations: {
            valid?: boolean;
            violations?: {
                actual?: string;
                code?: string;
                expected?: string;
                property?: string;
            }[];
        };
        /** @description An offset from the start like +30m or +1d2h, or an instant. */
        CaseWhen: string;
        /** @description Saved properties that the app's privacy policy keeps from plugins. */
        CaseWithheld: string[];
        /** @description A question of the type `ces`. */
        CesQuestion: {
            /** @description What else it says. */
            description?: string | null;
            /**
             * @description How it is shown.
             * @enum {string}
             */
            display?: "number" | "star" | "emoji";
            /** @description What stands at the most. */
            highLabel?: string;
            /** @description Its id within the flow. */
            id: string;
            /** @description What stands at the least. */
            lowLabel?: string;
            /** @description Whether it must be answered. */
            required?: boolean;
            /**
             * @description The most; 5 unless given. The least is 1.
             * @enum {integer}
             */
            scale?: 5 | 7;
            /** @description What it asks. */
            title: string;
            /**
             * @description What kind of answer it takes.
             * @constant
             */
            type: "ces";
            /** @description What limits answers, instead of at the question itself; and `message`. */
            validation?: {
                /** @description Shown where an answer is refused. */
                message?: string;
            } | null;
        };
        /** @description Something that was checked when a version was uploaded. */
        Check: {
            detail?: string | null;
            name: string;
            passed: boolean;
        };
        /** @description An error code and what it means. */
        CodeView: {
            code: string;
            meaning: string;
            /** Format: int32 */
            status: number;
        };
        /** @description All messages are taken. */
        CollectedView: {
            success: boolean;
        };
        /** @description Where a message of the tracking protocol comes from. Further members are let be. */
        CollectionContext: {
            app?: components["schemas"]["CollectionContextPart"] | null;
            device?: components["schemas"]["CollectionContextPart"] | null;
            library?: components["schemas"]["CollectionContextPart"] | null;
            /** @description The person's language. */
            locale?: string | null;
            os?: components["schemas"]["CollectionContextPart"] | null;
            /** @description The page. */
            page?: Record<string, never> | null;
            /** @description The person's time zone, an IANA name. */
            timezone?: string | null;
            /** @description What is known of the person. */
            traits?: Record<string, never> | null;
        };
        /** @description A part of a message's context. Further members are let be. */
        CollectionContextPart: {
            /** @description Its id. */
            id?: string | null;
            /** @description Its name. */
            name?: string | null;
            /** @description Its type. */
            type?: string | null;
            /** @description Its version. */
            version?: string | null;
        };
        /** @description A message of the tracking protocol. Further members are let be. */
        CollectionMessage: {
            /** @description The id of the person's browser or device. */
            anonymousId?: string | null;
            /** @description Of `page` and `screen`: the category. */
            category?: string | null;
            context?: components["schemas"]["CollectionContext"] | null;
            /** @description Of `track`: the event's name. */
            event?: string | null;
            /** @description Of `group`: the group. */
            groupId?: string | null;
            /** @description Its id, by which it is taken once however often it is sent. */
            messageId?: string | null;
            /** @description Of `page` and `screen`: the name. */
            name?: string | null;
            /** @description When it happened by the client's clock, where `timestamp` is corrected. */
            originalTimestamp?: string | null;
            /** @description Of `alias`: the id that becomes the other one's. */
            previousId?: string | null;
            /** @description Of `track`, `page` and `screen`: the event's properties. */
            properties?: Record<string, never> | null;
            /** @description When it was sent, by the client's clock; corrects timestamps. */
            sentAt?: string | null;
            /** @description When it happened. */
            timestamp?: string | null;
            /** @description Of `identify` and `group`: what is known of the person or the group. */
            traits?: Record<string, never> | null;
            /** @description `track`, `identify`, `page`, `screen`, `alias` or `group`; of a message that is no batch the path says it. */
            type?: string | null;
            /** @description The customer's id of the person. */
            userId?: string | null;
        };
        /** @description What the tracking protocol's clients send: a message, or a batch of messages. Further members are let be. */
        CollectionRequest: components["schemas"]["CollectionMessage"] & {
            /** @description Of a batch: 1 to 8,192 messages, each with its `type`. */
            batch?: components["schemas"]["CollectionMessage"][] | null;
            /** @description The key, where it is not the user name of basic authentication. */
            writeKey?: string | null;
        };
        /** @description Settings of consent. */
        Consent: {
            /**
             * @description Whether consent counts as absent until it is given.
             * @default false
             */
            required: boolean;
        };
        /** @description Settings of consent. */
        ConsentPatch: {
            /** @description Whether consent counts as absent until it is given. */
            required?: boolean | null;
        };
        /** @description A question of the type `consent`. */
        ConsentQuestion: {
            /** @description What else it says. */
            description?: string | null;
            /** @description Its id within the flow. */
            id: string;
            /** @description What is agreed to. */
            label: string;
            /** @description Whether it must be answered. */
            required?: boolean;
            /** @description What it asks. */
            title: string;
            /**
             * @description What kind of answer it takes.
             * @constant
             */
            type: "consent";
            /** @description What limits answers, instead of at the question itself; and `message`. */
            validation?: {
                /** @description Shown where an answer is refused. */
                message?: string;
            } | null;
        };
        /** @description Consent given or refused. */
        ConsentRequest: {
            analytics?: boolean | null;
            anonymousId: string;
            messaging?: boolean | null;
        };
        /** @description Consent as it stands. */
        ConsentView: {
            analytics: boolean;
            messaging: boolean;
            updatedAt: string;
        };
        /** @description A question of the type `contact_info`. */
        ContactInfoQuestion: {
            /** @description What else it says. */
            description?: string | null;
            /** @description What is asked for. */
            fields: components["schemas"]["QuestionField"][];
            /** @description Its id within the flow. */
            id: string;
            /** @description Whether it must be answered. */
            required?: boolean;
            /** @description What it asks. */
            title: string;
            /**
             * @description What kind of answer it takes.
             * @constant
             */
            type: "contact_info";
            /** @description What limits answers, instead of at the question itself; and `message`. */
            validation?: {
                /** @description Shown where an answer is refused. */
                message?: string;
            } | null;
        };
        /** @description What people write of a campaign. */
        Content: {
            /** @description Whom it is for, as the trigger plugin reads it. */
            audience?: components["schemas"]["Audience"] | null;
            /** @description What it is for. */
            description?: string | null;
            /** @description How often a person gets it. */
            frequencyCap?: components["schemas"]["FrequencyCap"] | null;
            /** @description How it finds its people. */
            mode?: components["schemas"]["CampaignMode"];
            /** @description Its name. */
            name: string;
            options?: components["schemas"]["Options"] | null;
            /**
             * Format: int32
             * @description Which comes first when several fire; higher first.
             */
            priority?: number;
            /** @description When it may be sent. */
            schedule?: components["schemas"]["Schedule"] | null;
            /** @description Where it stands. */
            status?: components["schemas"]["CampaignStatus"];
            /** @description What triggers it, as the trigger plugin reads it. */
            trigger?: components["schemas"]["Trigger"] | null;
            /** @description Always `push`. */
            type?: components["schemas"]["CampaignKind"];
            /** @description What it says; a person always gets the same one. */
            variants?: components["schemas"]["Variant"][];
        };
        /** @description Counts of an interval, or of all. */
        Counts: {
            /**
             * Format: int64
             * @description Events that were stored, by when they arrived; a dead letter's once it is replayed.
             */
            accepted: number;
            /** @description Push deliveries by the state that they came into. */
            deliveries: {
                [key: string]: number;
            };
            /**
             * Format: int64
             * @description Events that arrived: accepted, rejected and ignored.
             */
            events: number;
            /**
             * Format: int64
             * @description Lifecycle events that were taken while the app's toggle was off.
             */
            ignored: number;
            /**
             * Format: int64
             * @description In-app messages that were seen, by when a device said so.
             */
            inAppViews: number;
            /**
             * Format: int64
             * @description Instructions that were issued.
             */
            instructions: number;
            /**
             * Format: int64
             * @description Events that were rejected.
             */
            rejected: number;
        };
        /** @description An app to be made. */
        CreateAppRequest: {
            name: string;
            /**
             * Format: uuid
             * @description Needed where the token has roles in several workspaces.
             */
            workspaceId?: string | null;
        };
        /** @description A credential to be stored. Which members it takes depends on the platform. */
        CreateCredentialRequest: {
            /** @description `ios`. */
            bundleId?: string | null;
            environment?: components["schemas"]["Environment"] | null;
            /** @description `ios`. */
            keyId?: string | null;
            /** @description `ios`: the text of Apple's .p8 file. */
            p8?: string | null;
            platform: components["schemas"]["Platform"];
            /** @description `android`: the service account as Google gives it. */
            serviceAccount?: Record<string, never> | null;
            /** @description `ios`. */
            teamId?: string | null;
            vapid?: components["schemas"]["VapidRequest"] | null;
        };
        /** @description An identity key to be registered. */
        CreateIdentityKeyRequest: {
            kid: string;
            /** @description A PEM text, or a JWK object. */
            publicKey: string | Record<string, never>;
        };
        /** @description A key to be made. */
        CreateKeyRequest: {
            expiresAt?: string | null;
            kind: components["schemas"]["Kind"];
            name: string;
            scopes?: string[];
        };
        /** @description A new definition. */
        CreateRequest: components["schemas"]["DefinitionContent"] & {
            name: string;
            /** @description Whether it is in force; `active` unless given. */
            status?: components["schemas"]["DefinitionStatus"];
        };
        /** @description The public parts: of Apple's key, of Google's service account, or of a VAPID key. */
        CredentialIdentity: {
            /** @description Apple: the app. */
            bundleId?: string;
            /** @description Google: the account. */
            clientEmail?: string;
            /** @description Apple: `production` or `sandbox`. */
            environment?: string;
            /** @description Apple: the key. */
            keyId?: string;
            /** @description Google: the key. */
            privateKeyId?: string;
            /** @description Google: the Firebase project. */
            projectId?: string;
            /** @description Web: the key that browsers subscribe with. */
            publicKey?: string;
            /** @description Web: how push services reach the sender. */
            subject?: string;
            /** @description Apple: its team. */
            teamId?: string;
            /** @description Google: where tokens are granted. */
            tokenUri?: string;
        };
        /** @description A credential, without anything secret. */
        CredentialView: {
            createdAt: string;
            /** @description SHA-256 of the public key's `SubjectPublicKeyInfo`, in hexadecimal digits. */
            fingerprint: string;
            /** Format: uuid */
            id: string;
            /**
             * @description What is public: `keyId`, `teamId`, `bundleId`, `environment` of Apple's; `projectId`, `clientEmail` of
             *     Google's; `publicKey`, `subject` of browsers'.
             */
            identity: components["schemas"]["CredentialIdentity"];
            platform: components["schemas"]["Platform"];
            provider: components["schemas"]["Provider"];
            /** @description `active`, or `invalid` once its provider has refused it. */
            status: string;
            /** @description Why it is invalid. */
            statusReason?: string | null;
        };
        /** @description A question of the type `csat`. */
        CsatQuestion: {
            /** @description What else it says. */
            description?: string | null;
            /**
             * @description How it is shown.
             * @enum {string}
             */
            display?: "number" | "star" | "emoji";
            /** @description What stands at the most. */
            highLabel?: string;
            /** @description Its id within the flow. */
            id: string;
            /** @description What stands at the least. */
            lowLabel?: string;
            /** @description Whether it must be answered. */
            required?: boolean;
            /**
             * @description The most; 5 unless given. The least is 1.
             * @enum {integer}
             */
            scale?: 5;
            /** @description What it asks. */
            title: string;
            /**
             * @description What kind of answer it takes.
             * @constant
             */
            type: "csat";
            /** @description What limits answers, instead of at the question itself; and `message`. */
            validation?: {
                /** @description Shown where an answer is refused. */
                message?: string;
            } | null;
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_AckView: {
            data: components["schemas"]["AckView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_ActivationView: {
            data: components["schemas"]["ActivationView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_AnyCampaignView: {
            data: components["schemas"]["AnyCampaignView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_AnyTestView: {
            data: components["schemas"]["AnyTestView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_AppStatsView: {
            data: components["schemas"]["AppStatsView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_AppView: {
            data: components["schemas"]["AppView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_AttemptDetail: {
            data: components["schemas"]["AttemptDetail"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_AttemptView: {
            data: components["schemas"]["AttemptView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_BacktestView: {
            /** @description The job that does it. */
            data: {
                /** Format: uuid */
                jobId: string;
            };
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_CampaignReport: {
            data: components["schemas"]["CampaignReport"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_ConsentView: {
            data: components["schemas"]["ConsentView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_CredentialView: {
            data: components["schemas"]["CredentialView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_DefinitionView: {
            data: components["schemas"]["DefinitionView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_DeletionView: {
            data: components["schemas"]["DeletionView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_DeliveryView: {
            data: components["schemas"]["DeliveryView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_DryRunView: {
            data: components["schemas"]["DryRunView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_Explained: {
            data: components["schemas"]["Explained"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_ExportView: {
            data: components["schemas"]["ExportView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_IdentityKeyView: {
            data: components["schemas"]["IdentityKeyView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_IngestView: {
            data: components["schemas"]["IngestView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_JobView: {
            data: components["schemas"]["JobView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_KeptView: {
            data: components["schemas"]["KeptView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_LetterView: {
            data: components["schemas"]["LetterView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_MetricsView: {
            data: components["schemas"]["MetricsView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_NewKeyView: {
            data: components["schemas"]["NewKeyView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_NextView: {
            data: components["schemas"]["NextView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_OutcomeView: {
            data: components["schemas"]["OutcomeView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_Page_AttemptDetail: {
            /** @description A page of a list. */
            data: {
                /** @description The items. */
                items: components["schemas"]["AttemptDetail"][];
                /** @description Continues the list; null at its end. */
                nextCursor?: string | null;
            };
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_Page_DecisionView: {
            /** @description A page of a list. */
            data: {
                /** @description The items. */
                items: components["schemas"]["DecisionView"][];
                /** @description Continues the list; null at its end. */
                nextCursor?: string | null;
            };
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_Page_DefinitionView: {
            /** @description A page of a list. */
            data: {
                /** @description The items. */
                items: components["schemas"]["DefinitionView"][];
                /** @description Continues the list; null at its end. */
                nextCursor?: string | null;
            };
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_Page_DeletionView: {
            /** @description A page of a list. */
            data: {
                /** @description The items. */
                items: components["schemas"]["DeletionView"][];
                /** @description Continues the list; null at its end. */
                nextCursor?: string | null;
            };
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_Page_DeliveryView: {
            /** @description A page of a list. */
            data: {
                /** @description The items. */
                items: components["schemas"]["DeliveryView"][];
                /** @description Continues the list; null at its end. */
                nextCursor?: string | null;
            };
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_Page_EntryView: {
            /** @description A page of a list. */
            data: {
                /** @description The items. */
                items: components["schemas"]["EntryView"][];
                /** @description Continues the list; null at its end. */
                nextCursor?: string | null;
            };
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_Page_FeedEventView: {
            /** @description A page of a list. */
            data: {
                /** @description The items. */
                items: components["schemas"]["FeedEventView"][];
                /** @description Continues the list; null at its end. */
                nextCursor?: string | null;
            };
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_Page_GroupView: {
            /** @description A page of a list. */
            data: {
                /** @description The items. */
                items: components["schemas"]["GroupView"][];
                /** @description Continues the list; null at its end. */
                nextCursor?: string | null;
            };
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_Page_IdentityKeyView: {
            /** @description A page of a list. */
            data: {
                /** @description The items. */
                items: components["schemas"]["IdentityKeyView"][];
                /** @description Continues the list; null at its end. */
                nextCursor?: string | null;
            };
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_Page_KeyView: {
            /** @description A page of a list. */
            data: {
                /** @description The items. */
                items: components["schemas"]["KeyView"][];
                /** @description Continues the list; null at its end. */
                nextCursor?: string | null;
            };
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_Page_LetterView: {
            /** @description A page of a list. */
            data: {
                /** @description The items. */
                items: components["schemas"]["LetterView"][];
                /** @description Continues the list; null at its end. */
                nextCursor?: string | null;
            };
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_Page_ListedApp: {
            /** @description A page of a list. */
            data: {
                /** @description The items. */
                items: components["schemas"]["ListedApp"][];
                /** @description Continues the list; null at its end. */
                nextCursor?: string | null;
            };
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_Page_LogLineView: {
            /** @description A page of a list. */
            data: {
                /** @description The items. */
                items: components["schemas"]["LogLineView"][];
                /** @description Continues the list; null at its end. */
                nextCursor?: string | null;
            };
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_Page_PersonInstructionView: {
            /** @description A page of a list. */
            data: {
                /** @description The items. */
                items: components["schemas"]["PersonInstructionView"][];
                /** @description Continues the list; null at its end. */
                nextCursor?: string | null;
            };
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_Page_PluginView: {
            /** @description A page of a list. */
            data: {
                /** @description The items. */
                items: components["schemas"]["PluginView"][];
                /** @description Continues the list; null at its end. */
                nextCursor?: string | null;
            };
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_Page_RecipientView: {
            /** @description A page of a list. */
            data: {
                /** @description The items. */
                items: components["schemas"]["RecipientView"][];
                /** @description Continues the list; null at its end. */
                nextCursor?: string | null;
            };
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_Page_SegmentView: {
            /** @description A page of a list. */
            data: {
                /** @description The items. */
                items: components["schemas"]["SegmentView"][];
                /** @description Continues the list; null at its end. */
                nextCursor?: string | null;
            };
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_Page_WebhookAttemptView: {
            /** @description A page of a list. */
            data: {
                /** @description The items. */
                items: components["schemas"]["WebhookAttemptView"][];
                /** @description Continues the list; null at its end. */
                nextCursor?: string | null;
            };
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_Page_WebhookView: {
            /** @description A page of a list. */
            data: {
                /** @description The items. */
                items: components["schemas"]["WebhookView"][];
                /** @description Continues the list; null at its end. */
                nextCursor?: string | null;
            };
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_PluginDetailView: {
            data: components["schemas"]["PluginDetailView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_PollView: {
            data: components["schemas"]["PollView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_PreviewView: {
            data: components["schemas"]["PreviewView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_ProposalView: {
            data: components["schemas"]["ProposalView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_QueuedDeletionView: {
            data: components["schemas"]["QueuedDeletionView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_QueuedExportView: {
            data: components["schemas"]["QueuedExportView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_QueuedView: {
            /** @description The job that does it. */
            data: {
                /** Format: uuid */
                jobId: string;
            };
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_ReceiptsView: {
            data: components["schemas"]["ReceiptsView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_RecoverView: {
            data: components["schemas"]["RecoverView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_RegisteredView: {
            data: components["schemas"]["RegisteredView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_ReplayView: {
            data: components["schemas"]["ReplayView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_Report: {
            data: components["schemas"]["Report"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_RerunView: {
            data: components["schemas"]["RerunView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_ResponsesView: {
            data: components["schemas"]["ResponsesView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_SegmentMembersView: {
            data: components["schemas"]["SegmentMembersView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_SegmentPreviewView: {
            data: components["schemas"]["SegmentPreviewView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_SegmentView: {
            data: components["schemas"]["SegmentView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_SendView: {
            data: components["schemas"]["SendView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_SessionView: {
            data: components["schemas"]["SessionView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_SettingsView: {
            data: components["schemas"]["SettingsView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_SlotView: {
            data: components["schemas"]["SlotView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_SurveyView: {
            data: components["schemas"]["SurveyView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_TestView: {
            data: components["schemas"]["TestView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_TimelineView: {
            data: components["schemas"]["TimelineView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_UserDetail: {
            data: components["schemas"]["UserDetail"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_UserPage: {
            data: components["schemas"]["UserPage"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_Vec_AnyCampaignView: {
            data: components["schemas"]["AnyCampaignView"][];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_Vec_CodeView: {
            data: components["schemas"]["CodeView"][];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_Vec_CredentialView: {
            data: components["schemas"]["CredentialView"][];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_Vec_SegmentSizeView: {
            data: components["schemas"]["SegmentSizeView"][];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_Vec_SlotView: {
            data: components["schemas"]["SlotView"][];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_Vec_SurveyView: {
            data: components["schemas"]["SurveyView"][];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_VersionView: {
            data: components["schemas"]["VersionView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_WebhookRetryView: {
            data: components["schemas"]["WebhookRetryView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_WebhookTestView: {
            data: components["schemas"]["WebhookTestView"];
        };
        /** @description The envelope of every success: `{"data": …}`. */
        Data_WebhookView: {
            data: components["schemas"]["WebhookView"];
        };
        /** @description A condition on a date. */
        DateFilter: {
            /**
             * @description How the property is compared; `is_set` and `is_not_set` take no `value`.
             * @enum {string}
             */
            operator: "before" | "after" | "within_last" | "is_set" | "is_not_set";
            /** @description The property; nested ones by dots, `cart.total`. A value of another type is no match. */
            property: string;
            /**
             * @description The type that the property must have.
             * @constant
             */
            type: "date";
            /** @description An ISO 8601 date or date-time; a span for `within_last`. */
            value?: string | components["schemas"]["Span"];
        };
        /** @description A condition on a date. */
        DateFilterPatch: {
            /** @description How the property is compared; `is_set` and `is_not_set` take no `value`. */
            operator?: ("before" | "after" | "within_last" | "is_set" | "is_not_set") | null;
            /** @description The property; nested ones by dots, `cart.total`. A value of another type is no match. */
            property?: string | null;
            /** @description The type that the property must have. */
            type?: "date" | null;
            /** @description An ISO 8601 date or date-time; a span for `within_last`. */
            value?: string | components["schemas"]["SpanPatch"] | null;
        };
        /** @description A question of the type `date`. */
        DateQuestion: {
            /** @description What else it says. */
            description?: string | null;
            /** @description Its id within the flow. */
            id: string;
            /**
             * Format: date
             * @description The last day.
             */
            max?: string;
            /**
             * Format: date
             * @description The first day.
             */
            min?: string;
            /** @description Whether it must be answered. */
            required?: boolean;
            /** @description What it asks. */
            title: string;
            /**
             * @description What kind of answer it takes.
             * @constant
             */
            type: "date";
            /** @description What limits answers, instead of at the question itself; and `message`. */
            validation?: {
                /**
                 * Format: date
                 * @description The last day.
                 */
                max?: string;
                /** @description Shown where an answer is refused. */
                message?: string;
                /**
                 * Format: date
                 * @description The first day.
                 */
                min?: string;
            } | null;
        };
        /** @description What became of what was made on a day. */
        DayCounts: components["schemas"]["CampaignCounts"] & {
            /** @description The day's begin, by UTC. */
            at: string;
        };
        /** @description A campaign as it was. */
        DecidingCampaignView: {
            /** Format: uuid */
            campaignId: string;
            /** Format: int64 */
            version: number;
        };
        /** @description The version that decided. */
        DecidingPluginView: {
            digest: string;
            name: string;
            version: string;
        };
        /** @description A call of a trigger plugin that took effect. */
        DecisionView: {
            at: string;
            /** @description The campaigns that were decided about. */
            campaigns: components["schemas"]["DecidingCampaignView"][];
            /** Format: uuid */
            decisionId: string;
            /** @description How many of them fired, each counted once for each campaign. */
            fired: number;
            /** @description How many events and timers were decided about. */
            items: number;
            plugin: components["schemas"]["DecidingPluginView"];
        };
        /** @description What a definition says. */
        DefinitionContent: {
            /** @description What becomes of properties that it does not name. */
            additionalProperties?: components["schemas"]["AdditionalProperties"];
            /** @description What the event means. */
            description?: string | null;
            /** @description What becomes of events that break it. */
            enforcement?: components["schemas"]["Enforcement"];
            /** @description The properties, as the validation plugin reads them. */
            properties?: components["schemas"]["PropertyDefinition"][];
            validator?: components["schemas"]["Validator"] | null;
        };
        /** @description What a definition says. */
        DefinitionPatch: {
            /** @description What becomes of properties that it does not name. */
            additionalProperties?: components["schemas"]["AdditionalProperties"] | null;
            /** @description What the event means. */
            description?: string | null;
            /** @description What becomes of events that break it. */
            enforcement?: components["schemas"]["Enforcement"] | null;
            /** @description The properties, as the validation plugin reads them. */
            properties?: components["schemas"]["PropertyDefinition"][] | null;
            /** @description Whether it is in force. */
            status?: components["schemas"]["DefinitionStatus"] | null;
            validator?: components["schemas"]["ValidatorPatch"] | null;
        };
        /**
         * @description Whether a definition is in force.
         * @enum {string}
         */
        DefinitionStatus: "active" | "archived";
        /** @description A definition as the API shows it. */
        DefinitionView: components["schemas"]["DefinitionContent"] & {
            createdAt: string;
            /** Format: uuid */
            id: string;
            name: string;
            stats: components["schemas"]["StatsView"];
            status: components["schemas"]["DefinitionStatus"];
            updatedAt: string;
            /** Format: int64 */
            version: number;
        };
        /** @description A deletion and how far it is. */
        DeletionView: {
            completedAt?: string | null;
            /** Format: uuid */
            jobId: string;
            receipt?: components["schemas"]["ReceiptView"] | null;
            requestedAt: string;
            requestedBy: string;
            /** @description `queued`, `running`, `analytics_pending`, `completed` or `failed`. */
            status: string;
            steps: components["schemas"]["StepView"][];
        };
        /** @description A delivery as the API shows it. */
        DeliveryView: {
            /** Format: int64 */
            attempts: number;
            /** Format: uuid */
            campaignId: string;
            /** @description What was resolved, the same on each retry; null until then. */
            content?: components["schemas"]["PushMessage"] | null;
            createdAt: string;
            /** Format: uuid */
            deliveryId: string;
            reason?: string | null;
            status: string;
            /** Format: uuid */
            subjectId: string;
            test: boolean;
            transitions: components["schemas"]["TransitionView"][];
            /** Format: uuid */
            variantId: string;
        };
        /** @description A device. */
        DeviceView: {
            appVersion?: string | null;
            deviceId: string;
            firstSeenAt: string;
            lastSeenAt: string;
            locale?: string | null;
            platform?: string | null;
            push?: components["schemas"]["PushView"] | null;
            sdkVersion?: string | null;
        };
        /** @description One place where the output is not as expected. */
        Difference: {
            actual?: components["schemas"]["Value"] | null;
            expected?: components["schemas"]["Value"] | null;
            /** @description A JSON pointer into the output. */
            pointer: string;
        };
        /** @description A difference. */
        DifferenceView: {
            at: string;
            /**
             * Format: uuid
             * @description The campaign that was decided; without one, the event's definition was.
             */
            campaignId?: string | null;
            /** @description `added`, `removed`, `violations`, `state`, `timer`, `timer_added`, `timer_removed`, `content`, `failed` or `recovered`. */
            difference: string;
            /** Format: uuid */
            eventId: string;
            /** @description What the candidate would have left or said. */
            new?: unknown;
            /** @description What the active version left or said. */
            old?: unknown;
            /**
             * Format: uuid
             * @description Whose event it is.
             */
            subjectId: string;
        };
        /** @description What to try: one of the two. */
        DryRunRequest: {
            /** @description The properties of one event. */
            properties?: {
                [key: string]: unknown;
            } | null;
            /**
             * Format: int32
             * @description Stored events and dead letters of the name that arrived within so many hours, 1 to 720.
             */
            sinceHours?: number | null;
        };
        /** @description What the definition would make of events. */
        DryRunView: {
            /** @description Whether all events of the name in the time asked for were tried. */
            complete: boolean;
            /**
             * Format: int64
             * @description Events that break it.
             */
            failed: number;
            /**
             * Format: int64
             * @description Events of the server that were looked at to find those of the name, from the newest on.
             */
            lookedAt: number;
            /**
             * Format: int64
             * @description Events that match.
             */
            passed: number;
            /** @description Some that break it. */
            samples: components["schemas"]["SampleView"][];
            /**
             * Format: int64
             * @description Events that the validation plugin failed on.
             */
            unchecked: number;
        };
        /** @description The end of an attempt. */
        EndRequest: {
            /** @description One of the subject's anonymous ids. */
            anonymousId?: string | null;
        };
        /** @description What is shown at the end. */
        EndScreen: {
            /** @description Its text. */
            body?: string | null;
            button?: components["schemas"]["Button"] | null;
            /** @description Its id within the flow. */
            id: string;
            /** @description Its headline. */
            title: string;
        };
        /** @description Which browser session to end. */
        EndSessionRequest: {
            /** Format: uuid */
            clientId?: string | null;
        };
        /**
         * @description What becomes of events that break a definition.
         * @enum {string}
         */
        Enforcement: "enforce" | "observe";
        /** @description Something that was changed or refused. */
        EntryView: {
            /** @description What was done, as `resource.verb`. */
            action: string;
            /** @description The subject of an access token, `key/<id>`, or `server`. */
            actor: string;
            at: string;
            detail: unknown;
            /** Format: uuid */
            id: string;
            /** @description What it was done to: a kind and an id or name. */
            resource: string;
        };
        /**
         * @description Which of a provider's environments a token is good for. Only APNs has two.
         * @enum {string}
         */
        Environment: "production" | "sandbox";
        /** @description A condition on a person's events. */
        EventCondition: {
            /** @description How many there are; one at least unless given. */
            count?: {
                /** @description The number. */
                n: number;
                /**
                 * @description How the number is compared.
                 * @enum {string}
                 */
                operator: "eq" | "neq" | "gt" | "gte" | "lt" | "lte";
            };
            /** @description The events' name. */
            eventName: string;
            /** @description Only events whose properties are so. */
            filters?: components["schemas"]["Filter"];
            /**
             * @description What it is about.
             * @constant
             */
            kind: "event";
            /** @description How far back is looked, in days. */
            withinDays: number;
        };
        /** @description A condition on a person's events. */
        EventConditionPatch: {
            /** @description How many there are; one at least unless given. */
            count?: {
                /** @description The number. */
                n?: number | null;
                /** @description How the number is compared. */
                operator?: ("eq" | "neq" | "gt" | "gte" | "lt" | "lte") | null;
            } | null;
            /** @description The events' name. */
            eventName?: string | null;
            /** @description Only events whose properties are so. */
            filters?: components["schemas"]["FilterPatch"] | null;
            /** @description What it is about. */
            kind?: "event" | null;
            /** @description How far back is looked, in days. */
            withinDays?: number | null;
        };
        /**
         * @description What an endpoint can be told of: the transitions of deliveries, and what plugins' authors have to
         *     look at.
         * @enum {string}
         */
        EventType: "sent" | "delivered" | "displayed" | "opened" | "clicked" | "dismissed" | "bounced" | "failed" | "plugin.rolled_back" | "plugin.degraded" | "dead_letter.created";
        /**
         * @description Whether an event was taken.
         * @enum {string}
         */
        EventVerdict: "accepted" | "rejected";
        /** @description One thing that was checked. */
        ExplainStep: {
            /**
             * @description What: `event`, `consent`, `status`, `trigger`, `filter`, `occurrence`, `delay`, `audience_leaf`, `audience`,
             *     `sample`, `schedule`, `caps`, `personalization`, `delivery`, or what a plugin of the app's own calls it.
             */
            check: string;
            /** @description For a person. */
            detail: string;
            /** @description Whether it holds. */
            passed: boolean;
        };
        /** @description Why. */
        Explained: {
            /** @description What became of it. */
            outcome: components["schemas"]["Outcome"];
            /** @description What was checked, in the order in which it is. */
            steps: components["schemas"]["ExplainStep"][];
        };
        /** @description An export. */
        ExportView: {
            completedAt?: string | null;
            /** @description Where the archive is, without another credential, for a quarter of an hour. */
            downloadUrl?: string | null;
            downloadUrlExpiresAt?: string | null;
            error?: string | null;
            /** Format: uuid */
            exportId: string;
            requestedAt: string;
            requestedBy: string;
            /** @description In hexadecimal. */
            sha256?: string | null;
            /** Format: int64 */
            sizeBytes?: number | null;
            /** @description `queued`, `running`, `completed`, `failed` or `expired`. */
            status: string;
            /** @description How the request named the person; null once the person is deleted. */
            subject: unknown;
        };
        /** @description A condition on what is known of a person's device and place. */
        FactCondition: {
            /** @description One of these: platforms; countries in two letters, by the person's newest time zone; languages or locales. */
            in: string[];
            /**
             * @description What it is about.
             * @enum {string}
             */
            kind: "platform" | "country" | "locale";
        };
        /** @description A condition on what is known of a person's device and place. */
        FactConditionPatch: {
            /** @description One of these: platforms; countries in two letters, by the person's newest time zone; languages or locales. */
            in?: string[] | null;
            /** @description What it is about. */
            kind?: ("platform" | "country" | "locale") | null;
        };
        /** @description How often a version failed. */
        FailureRate: {
            /**
             * Format: int64
             * @description Calls.
             */
            calls: number;
            /**
             * Format: double
             * @description Their share, 0 to 1.
             */
            failureRate: number;
            /**
             * Format: int64
             * @description Those that failed.
             */
            failures: number;
            /**
             * Format: double
             * @description The share that may fail: `settings.plugins.maxFailureRate`.
             */
            maxFailureRate: number;
        };
        /** @description Why an event was rejected. */
        FeedErrorView: {
            /** @description A stable reason, as in the answer of the ingest route. */
            code: string;
            /**
             * Format: uuid
             * @description Where it is kept, if it broke its definition.
             */
            deadLetterId?: string | null;
            /** @description A sentence for a person. */
            message: string;
            /** @description Whether the same event may be accepted later. */
            retryable: boolean;
        };
        /** @description An event of an app. */
        FeedEventView: {
            /** @description Null for what a server sent under an external id. */
            anonymousId?: string | null;
            appVersion?: string | null;
            /** @description When by the client's clock, where that differed from the server's and `timestamp` was corrected. */
            clientTimestamp?: string | null;
            /** @description Why it was rejected. */
            errors?: components["schemas"]["FeedErrorView"][] | null;
            /**
             * Format: uuid
             * @description Null for a rejected event without a usable one.
             */
            eventId?: string | null;
            /** @description The external id that a server sent it under. */
            externalId?: string | null;
            /** @description Null for a rejected event without one. */
            name?: string | null;
            platform?: string | null;
            /** @description Of a rejected event, without what the privacy policy denies; empty if they could not be read. */
            properties: Record<string, never>;
            receivedAt: string;
            source: string;
            /** Format: uuid */
            subjectId: string;
            /** @description Null for a rejected event without a usable one. */
            timestamp?: string | null;
            verdict: components["schemas"]["EventVerdict"];
        };
        /** @description What is wrong with one part of a request body. */
        FieldError: {
            /** @description A stable reason in snake case. */
            code: string;
            /** @description A sentence that says what to change. */
            detail: string;
            /** @description A JSON pointer (RFC 6901) into the request body. */
            pointer: string;
        };
        /** @description Conditions on properties, nested to a depth of 4, 50 conditions at the most: a condition by the `type` of its property, or a group. */
        Filter: components["schemas"]["TextFilter"] | components["schemas"]["NumberFilter"] | components["schemas"]["BooleanFilter"] | components["schemas"]["DateFilter"] | components["schemas"]["FilterGroup"];
        /** @description A group of conditions; one without any holds. */
        FilterGroup: {
            /** @description All of these hold. */
            all?: components["schemas"]["Filter"][];
            /** @description One of these holds. */
            any?: components["schemas"]["Filter"][];
        };
        /** @description A group of conditions; one without any holds. */
        FilterGroupPatch: {
            /** @description All of these hold. */
            all?: components["schemas"]["Filter"][] | null;
            /** @description One of these holds. */
            any?: components["schemas"]["Filter"][] | null;
        };
        /** @description Conditions on properties, nested to a depth of 4, 50 conditions at the most: a condition by the `type` of its property, or a group. */
        FilterPatch: components["schemas"]["TextFilterPatch"] | components["schemas"]["NumberFilterPatch"] | components["schemas"]["BooleanFilterPatch"] | components["schemas"]["DateFilterPatch"] | components["schemas"]["FilterGroupPatch"];
        /** @description Which letters a job is about. All conditions must hold; none: all letters. */
        FilterRequest: {
            /** @description Events of this name. */
            eventName?: string | null;
            /** @description Received at or after: an ISO 8601 instant, or a day (UTC). */
            from?: string | null;
            /** @description This reason. */
            reason?: string | null;
            stage?: components["schemas"]["Stage"] | null;
            /** @description Received before: an ISO 8601 instant; or a day, which is included. */
            to?: string | null;
        };
        /** @description What a survey asks, in which order. */
        Flow: {
            /** @description Whether people can go back, and answer earlier questions otherwise. */
            backNavigation?: boolean;
            /** @description Where answers lead; without one, to the next question. */
            branches?: components["schemas"]["Branch"][];
            /** @description What is shown at the end. */
            endScreens?: components["schemas"]["EndScreen"][];
            progressStyle?: components["schemas"]["ProgressStyle"] | null;
            /** @description The questions. */
            questions?: components["schemas"]["Question"][];
            /** @description Where it begins; the first question unless given. */
            startQuestionId?: string | null;
        };
        /** @description All of these hold. */
        FlowAll: {
            /** @description The conditions. */
            all: components["schemas"]["FlowCondition"][];
        };
        /** @description One of these holds. */
        FlowAny: {
            /** @description The conditions. */
            any: components["schemas"]["FlowCondition"][];
        };
        /** @description A condition on the answer to a question. */
        FlowComparison: {
            /**
             * @description How the answer is compared.
             * @enum {string}
             */
            operator: "equals" | "not_equals" | "one_of" | "includes_any" | "includes_all" | "includes_none" | "gt" | "gte" | "lt" | "lte" | "between" | "contains" | "starts_with" | "ends_with" | "answered" | "skipped" | "nps_bucket";
            /** @description The question. */
            questionId: string;
            /** @description Compared with: as the question's answers; a list for `one_of` and those of `includes_`, the least and the most for `between`, `promoter`, `passive` or `detractor` for `nps_bucket`; none for `answered` and `skipped`. */
            value?: unknown;
        };
        /** @description A condition on answers, or a group of conditions; nested to a depth of 4, 50 conditions at the most. */
        FlowCondition: components["schemas"]["FlowComparison"] | components["schemas"]["FlowAll"] | components["schemas"]["FlowAny"];
        /** @description What a survey asks, in which order. */
        FlowPatch: {
            /** @description Whether people can go back, and answer earlier questions otherwise. */
            backNavigation?: boolean | null;
            /** @description Where answers lead; without one, to the next question. */
            branches?: components["schemas"]["Branch"][] | null;
            /** @description What is shown at the end. */
            endScreens?: components["schemas"]["EndScreen"][] | null;
            progressStyle?: components["schemas"]["ProgressStyle"] | null;
            /** @description The questions. */
            questions?: components["schemas"]["Question"][] | null;
            /** @description Where it begins; the first question unless given. */
            startQuestionId?: string | null;
        };
        /** @description The next thing to show. */
        FlowStep: {
            /** @description An end screen. */
            endScreenId?: string;
            /** @description A question. */
            questionId?: string;
        };
        /** @description How often a person is asked or messaged. */
        Frequency: {
            /** @default null */
            in_app: components["schemas"]["Cap"] | null;
            /**
             * Format: int64
             * @description The pause between two presentations, surveys or in-app messages, that one person sees.
             * @default 0
             */
            minSecondsBetweenPresentations: number;
            /** @default null */
            push: components["schemas"]["Cap"] | null;
            /** @default null */
            surveys: components["schemas"]["Cap"] | null;
        };
        /** @description How often a person meets it. */
        FrequencyCap: {
            /** @description Pauses, in days. */
            cooldownDays?: {
                /** @description After any of its kind. */
                sameType?: number;
                /** @description After the campaign itself. */
                self?: number;
            };
            /** @description The app's caps do not hold for it. */
            ignoreGlobalCap?: boolean;
            /** @description At most so many for one person. */
            perSubject?: {
                /** @description How many. */
                max: number;
                /** @description In so many days (1 to 365), or `lifetime`. */
                windowDays?: number | "lifetime";
            };
        };
        /** @description How often a person meets it. */
        FrequencyCapPatch: {
            /** @description Pauses, in days. */
            cooldownDays?: {
                /** @description After any of its kind. */
                sameType?: number | null;
                /** @description After the campaign itself. */
                self?: number | null;
            } | null;
            /** @description The app's caps do not hold for it. */
            ignoreGlobalCap?: boolean | null;
            /** @description At most so many for one person. */
            perSubject?: {
                /** @description How many. */
                max?: number | null;
                /** @description In so many days (1 to 365), or `lifetime`. */
                windowDays?: number | "lifetime" | null;
            } | null;
        };
        /** @description How often a person is asked or messaged. */
        FrequencyPatch: {
            in_app?: components["schemas"]["CapPatch"] | null;
            /**
             * Format: int64
             * @description The pause between two presentations, surveys or in-app messages, that one person sees.
             */
            minSecondsBetweenPresentations?: number | null;
            push?: components["schemas"]["CapPatch"] | null;
            surveys?: components["schemas"]["CapPatch"] | null;
        };
        /** @description Letters of an event name with a reason. */
        GroupView: {
            /** Format: int64 */
            count: number;
            eventName: string;
            firstSeenAt: string;
            lastSeenAt: string;
            reason: string;
            /**
             * Format: uuid
             * @description One of them: the last.
             */
            sampleId: string;
        };
        /**
         * @description How a webhook fares, in a word.
         * @enum {string}
         */
        HealthState: "healthy" | "degraded" | "disabled";
        /** @description How the active version fares. */
        HealthView: {
            /**
             * Format: int64
             * @description Calls in the last quarter of an hour.
             */
            calls: number;
            /** Format: double */
            failureRate: number;
            /**
             * Format: int64
             * @description Those that failed.
             */
            failures: number;
            /**
             * @description `idle`: no calls in the last quarter of an hour; `healthy`: none failed; `degraded`: some did; `failing`:
             *     more than `settings.plugins.maxFailureRate`.
             */
            state: string;
        };
        /**
         * @description A kind of id that people have.
         * @enum {string}
         */
        IdKind: "anonymousId" | "externalId";
        /** @description An identity key. */
        IdentityKeyView: {
            /** @description `ES256`, `EdDSA` or `RS256`. */
            algorithm: string;
            createdAt: string;
            /** @description SHA-256 of the `SubjectPublicKeyInfo`, in hexadecimal digits. */
            fingerprint: string;
            kid: string;
        };
        /** @description Something to press. */
        InAppButton: {
            /** @description Its id, which a `clicked` acknowledgement names as `actionId`. */
            id: string;
            /** @description What stands on it; may have tokens. */
            label: string;
            /** @description What pressing it does. */
            openAction?: components["schemas"]["OpenAction"];
            style?: components["schemas"]["InAppButtonStyle"] | null;
        };
        /**
         * @description How much weight a button has.
         * @enum {string}
         */
        InAppButtonStyle: "primary" | "secondary";
        /** @description What people write of an in-app message. */
        InAppContent: {
            /** @description Whom it is for, as the trigger plugin reads it. */
            audience?: components["schemas"]["Audience"] | null;
            /** @description What it is for. */
            description?: string | null;
            /**
             * Format: int32
             * @description How long it stays on offer, in seconds: 1 to 7,776,000; 7 days unless given.
             */
            expiresAfterSeconds?: number | null;
            /** @description How often a person meets it. */
            frequencyCap?: components["schemas"]["FrequencyCap"] | null;
            /** @description How it finds its people. */
            mode?: components["schemas"]["InAppMode"];
            /** @description Its name. */
            name: string;
            /**
             * Format: int32
             * @description Which comes first when several fire; higher first.
             */
            priority?: number;
            /** @description When it may be shown. */
            schedule?: components["schemas"]["Schedule"] | null;
            /** @description Where it stands. */
            status?: components["schemas"]["CampaignStatus"];
            /** @description How it looks, as a survey's theme. */
            theme?: components["schemas"]["Theme"] | null;
            /** @description What triggers it, as the trigger plugin reads it. */
            trigger?: components["schemas"]["Trigger"] | null;
            /** @description Always `in_app`. */
            type: components["schemas"]["InAppType"];
            /** @description What it says; a person always gets the same one. */
            variants?: components["schemas"]["InAppVariant"][];
        };
        /**
         * @description How a message is laid out.
         * @enum {string}
         */
        InAppLayout: "banner" | "modal" | "card" | "fullscreen";
        /**
         * @description How an in-app message finds its people.
         * @enum {string}
         */
        InAppMode: "triggered" | "scheduled";
        /** @description What people write of an in-app message. */
        InAppPatch: {
            /** @description Whom it is for, as the trigger plugin reads it. */
            audience?: components["schemas"]["AudiencePatch"] | null;
            /** @description What it is for. */
            description?: string | null;
            /**
             * Format: int32
             * @description How long it stays on offer, in seconds: 1 to 7,776,000; 7 days unless given.
             */
            expiresAfterSeconds?: number | null;
            /** @description How often a person meets it. */
            frequencyCap?: components["schemas"]["FrequencyCapPatch"] | null;
            /** @description How it finds its people. */
            mode?: components["schemas"]["InAppMode"] | null;
            /** @description Its name. */
            name?: string | null;
            /**
             * Format: int32
             * @description Which comes first when several fire; higher first.
             */
            priority?: number | null;
            /** @description When it may be shown. */
            schedule?: components["schemas"]["SchedulePatch"] | null;
            /** @description Where it stands. */
            status?: components["schemas"]["CampaignStatus"] | null;
            /** @description How it looks, as a survey's theme. */
            theme?: components["schemas"]["ThemePatch"] | null;
            /** @description What triggers it, as the trigger plugin reads it. */
            trigger?: components["schemas"]["TriggerPatch"] | null;
            /** @description Always `in_app`. */
            type?: components["schemas"]["InAppType"] | null;
            /** @description What it says; a person always gets the same one. */
            variants?: components["schemas"]["InAppVariant"][] | null;
        };
        /** @description A test of an in-app message. */
        InAppTestView: {
            /** @description What is shown; null where it could not be resolved. */
            content?: components["schemas"]["MessagePayload"] | null;
            /**
             * Format: uuid
             * @description The instruction, which the person's next poll has; none where nothing can be shown.
             */
            instructionId?: string | null;
            reason?: string | null;
            /** @description `queued`, `skipped` or `failed`. */
            status: string;
        };
        /**
         * @description The kind of the campaign.
         * @enum {string}
         */
        InAppType: "in_app";
        /** @description One way to say it. */
        InAppVariant: {
            /** @description The text; may have tokens. */
            body?: string | null;
            /** @description What can be pressed, two at the most. */
            buttons?: components["schemas"]["InAppButton"][];
            /** @description Whether a person can close it otherwise. */
            dismissible?: boolean;
            /**
             * Format: uuid
             * @description Its id; made when it is missing.
             */
            id?: string | null;
            /** @description An image, at an https address. */
            imageUrl?: string | null;
            /** @description How it is laid out. */
            layout: components["schemas"]["InAppLayout"];
            localization?: components["schemas"]["Localization"] | null;
            /** @description What its tokens stand for, as the personalization plugin reads it. */
            personalization?: components["schemas"]["Personalization"] | null;
            /** @description The headline; may have tokens. */
            title?: string | null;
            /**
             * Format: double
             * @description Its share of the people, in proportion to the others'.
             */
            weight?: number;
        };
        /** @description An in-app message as the API shows it. */
        InAppView: components["schemas"]["InAppContent"] & {
            activatedAt?: string | null;
            /** Format: uuid */
            appId: string;
            createdAt: string;
            /** Format: uuid */
            id: string;
            updatedAt: string;
            /** Format: int64 */
            version: number;
        };
        /** @description Which events to look at. */
        InferRequest: {
            /** @description Their name. */
            eventName: string;
            /**
             * Format: int32
             * @description Those that arrived within so many hours, 1 to 720; 24 unless given.
             */
            sinceHours?: number | null;
        };
        /** @description Settings of ingest. */
        Ingest: {
            /**
             * @description Whether a public write key is enough for the server-side shape.
             * @default false
             */
            allowUnverifiedServerEvents: boolean;
            /**
             * Format: int64
             * @description How far ahead of the server's clock an event may be.
             * @default 86400
             */
            futureWindowSeconds: number;
            /**
             * Format: int64
             * @description How old an event may be.
             * @default 2592000
             */
            pastWindowSeconds: number;
        };
        /** @description Who the events are of, and where they come from. */
        IngestContext: {
            /** @description The anonymous id that the subject token was issued for. */
            anonymousId: string;
            /** @description The app's version. */
            appVersion?: string | null;
            /** @description What the SDK calls the device, at most 256 characters. */
            deviceId?: string | null;
            /** @description The identified user's own id. */
            externalId?: string | null;
            /** @description Language and region, such as `de-AT`. */
            locale?: string | null;
            /** @description Such as `ios`. */
            platform?: string | null;
            /** @description The SDK's version. */
            sdkVersion?: string | null;
            /** @description When the request was sent, by the client's clock; corrects timestamps. */
            sentAt?: string | null;
            /** @description What the SDK calls its session, at most 256 characters. Another name is another session. */
            sessionId?: string | null;
            /** @description IANA time zone, such as `Europe/Vienna`. The person's `country` is the one that it is in; without one, the region of the locale. */
            timezone?: string | null;
        };
        /** @description Asks for what events fire, at once. */
        IngestDelivery: {
            /**
             * Format: uuid
             * @description The active browser session.
             */
            clientId?: string | null;
            /** @description 1 to 20 ids of this request's events. */
            eventIds: string[];
            /** @description At most 120 characters. */
            screenName?: string | null;
        };
        /** @description One event. */
        IngestEvent: {
            /** @description That of the context. */
            anonymousId?: string | null;
            /**
             * Format: uuid
             * @description Stable across retries; derived from the content when it is missing.
             */
            eventId?: string | null;
            /** @description That of the identified subject. */
            externalId?: string | null;
            /** @description What happened, 1 to 200 characters. */
            name: string;
            /** @description At most 256 members. */
            properties?: {
                [key: string]: unknown;
            } | null;
            /** @description When, ISO 8601 with an offset. */
            timestamp: string;
        };
        /** @description Settings of ingest. */
        IngestPatch: {
            /** @description Whether a public write key is enough for the server-side shape. */
            allowUnverifiedServerEvents?: boolean | null;
            /**
             * Format: int64
             * @description How far ahead of the server's clock an event may be.
             */
            futureWindowSeconds?: number | null;
            /**
             * Format: int64
             * @description How old an event may be.
             */
            pastWindowSeconds?: number | null;
        };
        /** @description Events of one person: with `context` from an SDK, with `userId` from a server. */
        IngestRequest: {
            context?: components["schemas"]["IngestContext"] | null;
            delivery?: components["schemas"]["IngestDelivery"] | null;
            /** @description The events, 1 to 500. */
            events: components["schemas"]["IngestEvent"][];
            /** @description The customer's own id of the user, for the server-side shape. */
            userId?: string | null;
        };
        /** @description What became of a request's events. */
        IngestView: {
            accepted: number;
            errors: components["schemas"]["Rejection"][];
            instructions?: components["schemas"]["InstructionView"][] | null;
            rejected: number;
        };
        /** @description What to show, as JSON that is not taken apart. */
        InstructionPayload: {
            attempt?: components["schemas"]["AuthorizedAttempt"] | null;
            /** @description The survey. One with translations has a `locale`: the one that most of its text is of. */
            survey: components["schemas"]["SurveyPayload"];
        } | {
            /**
             * @description `{variantId, layout, title, body, imageUrl, buttons, dismissible, theme}`, as it was made. One with
             *     translations has a `locale`: the one that most of its text is of.
             */
            message: components["schemas"]["MessagePayload"];
        };
        /** @description An instruction as SDKs get it. */
        InstructionView: {
            availableAt: string;
            /** Format: uuid */
            campaignId: string;
            /** Format: int64 */
            campaignVersion: number;
            createdAt: string;
            expiresAt: string;
            /** Format: uuid */
            instructionId: string;
            kind: string;
            payload: components["schemas"]["InstructionPayload"];
            /** Format: int32 */
            priority: number;
            trigger?: components["schemas"]["TriggerView"] | null;
        };
        /**
         * @description How long the intervals are.
         * @enum {string}
         */
        Interval: "hour" | "day";
        /** @description Counts of an interval. */
        IntervalView: components["schemas"]["Counts"] & {
            /** @description When it begins. */
            at: string;
        };
        /** @description Why a source gave no usable value. */
        IssueView: {
            bindingId?: string | null;
            code: string;
            message: string;
        };
        /** @description A job and how far it is. */
        JobView: {
            completedAt?: string | null;
            createdAt: string;
            error?: string | null;
            /** Format: uuid */
            jobId: string;
            kind: string;
            progress: components["schemas"]["Progress"];
            requestedBy: string;
            result?: unknown;
            /** @description `queued`, `running`, `completed` or `failed`. */
            status: string;
            updatedAt: string;
        };
        /** @description What plugins keep of a person. */
        KeptView: {
            /** @description Campaigns whose plugins keep something. */
            campaigns: components["schemas"]["CampaignView"][];
            /** @description As what the id in the path was found. Somebody else may have it as the other kind of id. */
            matchedBy: components["schemas"]["IdKind"];
            /** @description What all states take together. */
            stateBytes: number;
            /** @description How many timers there are. */
            timers: number;
        };
        /** @description A key without what is secret of it. */
        KeyView: {
            createdAt: string;
            expiresAt?: string | null;
            /** Format: uuid */
            id: string;
            /** @description `write`, `server` or `api`. */
            kind: string;
            /** @description To about a minute. */
            lastUsedAt?: string | null;
            name: string;
            scopes: string[];
        };
        /** @description A subscription's keys, in URL-safe Base64. */
        KeysRequest: {
            auth: string;
            p256dh: string;
        };
        /**
         * @description What a key is for.
         * @enum {string}
         */
        Kind: "write" | "server" | "api";
        /** @description How long calls took, in microseconds; quantiles are rounded up by at most a fifth. */
        LatencyView: {
            /** Format: int64 */
            max: number;
            /** Format: int64 */
            p50: number;
            /** Format: int64 */
            p95: number;
            /** Format: int64 */
            p99: number;
        };
        /** @description A timer that the event has set. */
        LetterTimerView: {
            /** @description When it fell due. */
            dueAt: string;
            /** @description The plugin's key for it. */
            key: string;
        };
        /** @description A dead letter as the API shows it. */
        LetterView: {
            anonymousId?: string | null;
            /** Format: int64 */
            attempts: number;
            /** Format: uuid */
            campaignId?: string | null;
            /** @description When by the client's clock, where that differed from the server's and `timestamp` was corrected. */
            clientTimestamp?: string | null;
            /** @description What the plugin said when it failed, such as the message and place of a panic. */
            detail?: string | null;
            event: unknown;
            /** Format: uuid */
            eventId: string;
            eventName: string;
            /** Format: uuid */
            id: string;
            plugin?: components["schemas"]["PluginVersion"] | null;
            reason: string;
            receivedAt: string;
            stage: components["schemas"]["Stage"];
            state: string;
            /** Format: uuid */
            subjectId: string;
            timer?: components["schemas"]["LetterTimerView"] | null;
            timestamp: string;
            violations: components["schemas"]["Violation"][];
        };
        /** @description A question of the type `link`. */
        LinkQuestion: {
            /** @description What it says. */
            body?: string;
            /** @description What stands on its button. */
            buttonLabel?: string;
            /** @description What else it says. */
            description?: string | null;
            /** @description Its id within the flow. */
            id: string;
            /** @description Whether it must be answered. */
            required?: boolean;
            /** @description What it asks. */
            title: string;
            /**
             * @description What kind of answer it takes.
             * @constant
             */
            type: "link";
            /** @description Where it leads. */
            url?: string;
            /** @description What limits answers, instead of at the question itself; and `message`. */
            validation?: {
                /** @description Shown where an answer is refused. */
                message?: string;
            } | null;
        };
        /** @description An app and what the caller may do in it. */
        ListedApp: components["schemas"]["AppView"] & {
            role: string;
        };
        /** @description A survey's text in other languages. */
        Localization: {
            /** @description The language of the flow itself. */
            defaultLocale: string;
            /** @description Texts by locale and path. */
            translations?: {
                [key: string]: {
                    [key: string]: string;
                };
            };
        };
        /** @description A survey's text in other languages. */
        LocalizationPatch: {
            /** @description The language of the flow itself. */
            defaultLocale?: string | null;
            /** @description Texts by locale and path. */
            translations?: {
                [key: string]: {
                    [key: string]: string | null;
                } | null;
            } | null;
        };
        /** @description A line that a plugin logged. */
        LogLineView: {
            /**
             * Format: uuid
             * @description For operators: in which app.
             */
            appId?: string | null;
            at: string;
            /** @description The campaigns that the call decided in which it was logged, at most 20. */
            campaignIds: string[];
            /** @description The events that the call was about, at most 20. */
            eventIds: string[];
            /**
             * Format: uuid
             * @description Ids ascend in the order in which lines were written.
             */
            id: string;
            /**
             * @description `decision`, `shadow`, `check`: of a configuration that somebody saved, or that was in force as the version was
             *     activated; or `dropped`: the server's own line about others that were not kept.
             */
            kind: string;
            /** @description `debug`, `info`, `warn` or `error`. */
            level: string;
            message: string;
            /** @description The people whom the call was about, at most 20. */
            subjectIds: string[];
            version: string;
        };
        /** @description A line that the plugin logged. */
        LogView: {
            level: string;
            message: string;
        };
        /** @description A question of the type `long_text`. */
        LongTextQuestion: {
            /** @description What else it says. */
            description?: string | null;
            /**
             * @description What an answer has to look like.
             * @enum {string}
             */
            format?: "email" | "url" | "phone";
            /** @description Its id within the flow. */
            id: string;
            /** @description The most characters; 10,000 unless given. */
            maxLength?: number;
            /** @description The least characters. */
            minLength?: number;
            /** @description What stands in the empty field. */
            placeholder?: string;
            /** @description Whether it must be answered. */
            required?: boolean;
            /** @description What it asks. */
            title: string;
            /**
             * @description What kind of answer it takes.
             * @constant
             */
            type: "long_text";
            /** @description What limits answers, instead of at the question itself; and `message`. */
            validation?: {
                /**
                 * @description What an answer has to look like.
                 * @enum {string}
                 */
                format?: "email" | "url" | "phone";
                /** @description The most characters; 10,000 unless given. */
                maxLength?: number;
                /** @description Shown where an answer is refused. */
                message?: string;
                /** @description The least characters. */
                minLength?: number;
            } | null;
        };
        /** @description A question of the type `matrix`. */
        MatrixQuestion: {
            /** @description What can be selected for each row. */
            columns: components["schemas"]["QuestionItem"][];
            /** @description What else it says. */
            description?: string | null;
            /** @description Its id within the flow. */
            id: string;
            /** @description Whether it must be answered. */
            required?: boolean;
            /** @description What is asked of. */
            rows: components["schemas"]["QuestionItem"][];
            /** @description What it asks. */
            title: string;
            /**
             * @description What kind of answer it takes.
             * @constant
             */
            type: "matrix";
            /** @description What limits answers, instead of at the question itself; and `message`. */
            validation?: {
                /** @description Shown where an answer is refused. */
                message?: string;
            } | null;
        };
        /** @description Something to press. */
        MessageButton: {
            /** @description Its id, which a `clicked` acknowledgement names as `actionId`. */
            id: string;
            /** @description What stands on it. */
            label: string;
            /** @description What pressing it does. */
            openAction: components["schemas"]["OpenAction"];
            /** @description How much weight it has. */
            style: components["schemas"]["InAppButtonStyle"];
        };
        /** @description A condition on what a person did with messages. */
        MessageCondition: {
            /** @description The campaigns; all unless given. */
            campaignIds?: string[];
            /**
             * @description What became of a message.
             * @enum {string}
             */
            interaction: "sent" | "delivered" | "displayed" | "shown" | "opened" | "clicked" | "dismissed" | "bounced" | "failed";
            /**
             * @description What it is about.
             * @constant
             */
            kind: "message_interaction";
            /** @description How far back is looked, in days; without it, for ever. */
            withinDays?: number;
        };
        /** @description A condition on what a person did with messages. */
        MessageConditionPatch: {
            /** @description The campaigns; all unless given. */
            campaignIds?: string[] | null;
            /** @description What became of a message. */
            interaction?: ("sent" | "delivered" | "displayed" | "shown" | "opened" | "clicked" | "dismissed" | "bounced" | "failed") | null;
            /** @description What it is about. */
            kind?: "message_interaction" | null;
            /** @description How far back is looked, in days; without it, for ever. */
            withinDays?: number | null;
        };
        /** @description An in-app message as SDKs get it: everything filled in. */
        MessagePayload: {
            /** @description The text. */
            body: string | null;
            /** @description What can be pressed. */
            buttons: components["schemas"]["MessageButton"][];
            /** @description Whether a person can close it otherwise. */
            dismissible: boolean;
            /** @description An image, at an https address. */
            imageUrl: string | null;
            /** @description How it is laid out. */
            layout: components["schemas"]["InAppLayout"];
            /** @description Of one with translations: the language that most of its text is of. */
            locale?: string;
            /** @description How it looks. */
            theme: components["schemas"]["Theme"] | null;
            /** @description The headline. */
            title: string | null;
            /**
             * Format: uuid
             * @description What is said of the campaign.
             */
            variantId: string;
        };
        /** @description How the versions of a plugin fared. */
        MetricsView: {
            from: string;
            name: string;
            to: string;
            versions: components["schemas"]["VersionMetricsView"][];
        };
        /**
         * @description How a survey finds its people.
         * @enum {string}
         */
        Mode: "triggered" | "scheduled" | "on_demand" | "link_only";
        /** @description A question of the type `multiple_choice`. */
        MultipleChoiceQuestion: {
            /** @description Whether words of one's own are taken. */
            allowOther?: boolean;
            /** @description What else it says. */
            description?: string | null;
            /** @description Its id within the flow. */
            id: string;
            /** @description So many can be selected. */
            maxSelections?: number;
            /** @description So many must be selected. */
            minSelections?: number;
            /** @description What can be selected. */
            options: components["schemas"]["QuestionItem"][];
            /** @description Whether it must be answered. */
            required?: boolean;
            /** @description Whether the options come in another order each time. */
            shuffle?: boolean;
            /** @description What it asks. */
            title: string;
            /**
             * @description What kind of answer it takes.
             * @constant
             */
            type: "multiple_choice";
            /** @description What limits answers, instead of at the question itself; and `message`. */
            validation?: {
                /** @description So many can be selected. */
                maxSelections?: number;
                /** @description Shown where an answer is refused. */
                message?: string;
                /** @description So many must be selected. */
                minSelections?: number;
            } | null;
        };
        /** @description A key that was just made. */
        NewKeyView: components["schemas"]["KeyView"] & {
            /** @description What the caller sends. It is never shown again. */
            key: string;
        };
        /** @description What is next. */
        NextView: {
            /** @description `{questionId}`, `{endScreenId}`, or null at the end of a survey without end screens. */
            next: components["schemas"]["FlowStep"] | null;
        };
        /** @description A net promoter score. */
        Nps: {
            /**
             * Format: int64
             * @description Answers 0 to 6.
             */
            detractors: number;
            /**
             * Format: int64
             * @description Answers 7 and 8.
             */
            passives: number;
            /**
             * Format: int64
             * @description Answers 9 and 10.
             */
            promoters: number;
            /**
             * Format: double
             * @description Promoters less detractors in percent, -100 to 100.
             */
            score: number;
        };
        /** @description A question of the type `nps`. */
        NpsQuestion: {
            /** @description What else it says. */
            description?: string | null;
            /** @description What stands at the most. */
            highLabel?: string;
            /** @description Its id within the flow. */
            id: string;
            /** @description What stands at the least. */
            lowLabel?: string;
            /** @description Whether it must be answered. */
            required?: boolean;
            /** @description What it asks. */
            title: string;
            /**
             * @description What kind of answer it takes.
             * @constant
             */
            type: "nps";
            /** @description What limits answers, instead of at the question itself; and `message`. */
            validation?: {
                /** @description Shown where an answer is refused. */
                message?: string;
            } | null;
        };
        /** @description A condition on a number. */
        NumberFilter: {
            /**
             * @description How the property is compared; `is_set` and `is_not_set` take no `value`.
             * @enum {string}
             */
            operator: "eq" | "neq" | "gt" | "gte" | "lt" | "lte" | "between" | "is_set" | "is_not_set";
            /** @description The property; nested ones by dots, `cart.total`. A value of another type is no match. */
            property: string;
            /**
             * @description The type that the property must have.
             * @constant
             */
            type: "number";
            /** @description A number; the least and the most for `between`. */
            value?: number | number[];
        };
        /** @description A condition on a number. */
        NumberFilterPatch: {
            /** @description How the property is compared; `is_set` and `is_not_set` take no `value`. */
            operator?: ("eq" | "neq" | "gt" | "gte" | "lt" | "lte" | "between" | "is_set" | "is_not_set") | null;
            /** @description The property; nested ones by dots, `cart.total`. A value of another type is no match. */
            property?: string | null;
            /** @description The type that the property must have. */
            type?: "number" | null;
            /** @description A number; the least and the most for `between`. */
            value?: number | number[] | null;
        };
        /** @description A question of the type `number`. */
        NumberQuestion: {
            /** @description What else it says. */
            description?: string | null;
            /** @description Its id within the flow. */
            id: string;
            /** @description The most. */
            max?: number;
            /** @description The least. */
            min?: number;
            /** @description Whether it must be answered. */
            required?: boolean;
            /** @description Answers are multiples of it, counted from `min` or 0. */
            step?: number;
            /** @description What it asks. */
            title: string;
            /**
             * @description What kind of answer it takes.
             * @constant
             */
            type: "number";
            /** @description What limits answers, instead of at the question itself; and `message`. */
            validation?: {
                /** @description The most. */
                max?: number;
                /** @description Shown where an answer is refused. */
                message?: string;
                /** @description The least. */
                min?: number;
                /** @description Answers are multiples of it, counted from `min` or 0. */
                step?: number;
            } | null;
        };
        /** @description How often the same event fires. */
        Occurrence: {
            /**
             * @description `every`; `first`: the person's first such event ever; `once`: one firing a person and campaign; `once_per_session`; `nth` and `every_nth` with `n`; `at_least` with `n` and `withinDays`.
             * @enum {string}
             */
            mode: "every" | "first" | "once" | "once_per_session" | "nth" | "every_nth" | "at_least";
            /** @description For `nth`, `every_nth` and `at_least`. */
            n?: number;
            /** @description For `at_least`: the days in which the events come. */
            withinDays?: number;
        };
        /** @description How often the same event fires. */
        OccurrencePatch: {
            /** @description `every`; `first`: the person's first such event ever; `once`: one firing a person and campaign; `once_per_session`; `nth` and `every_nth` with `n`; `at_least` with `n` and `withinDays`. */
            mode?: ("every" | "first" | "once" | "once_per_session" | "nth" | "every_nth" | "at_least") | null;
            /** @description For `nth`, `every_nth` and `at_least`. */
            n?: number | null;
            /** @description For `at_least`: the days in which the events come. */
            withinDays?: number | null;
        };
        /**
         * @description What becomes of a message in quiet hours.
         * @enum {string}
         */
        OnQuiet: "defer" | "drop";
        /** @description What opening a message does. */
        OpenAction: {
            /** @description What. */
            action: components["schemas"]["Action"];
            /** @description What the app gets, of `json`; its values may be tokens. */
            actionJson?: unknown;
            /**
             * @description Where to: of `url` a page of the web, of `deep_link` any address but of what would run as a program
             *     (`javascript:`, `data:`, `file:` …). May have tokens; what they make of it is held to the same.
             */
            url?: string | null;
        };
        /** @description How a message is delivered and shown. */
        Options: {
            /**
             * Format: int32
             * @description The number on the app's icon.
             */
            badge?: number | null;
            /** @description A later message with the same key takes this one's place. */
            collapseKey?: string | null;
            /** @description An image to show. */
            imageUrl?: string | null;
            priority?: components["schemas"]["Priority"] | null;
            /** @description The name of a sound that the app has, or `default`. */
            sound?: string | null;
            /**
             * Format: int32
             * @description How long the provider keeps trying, in seconds. 0: now or never. Absent: as long as the provider does.
             */
            ttlSeconds?: number | null;
        };
        /** @description How a message is delivered and shown. */
        OptionsPatch: {
            /**
             * Format: int32
             * @description The number on the app's icon.
             */
            badge?: number | null;
            /** @description A later message with the same key takes this one's place. */
            collapseKey?: string | null;
            /** @description An image to show. */
            imageUrl?: string | null;
            priority?: components["schemas"]["Priority"] | null;
            /** @description The name of a sound that the app has, or `default`. */
            sound?: string | null;
            /**
             * Format: int32
             * @description How long the provider keeps trying, in seconds. 0: now or never. Absent: as long as the provider does.
             */
            ttlSeconds?: number | null;
        };
        /**
         * @description What became of an event for a campaign and subject.
         * @enum {string}
         */
        Outcome: "fired" | "not_fired" | "suppressed" | "deferred" | "waiting" | "processing" | "unknown_event";
        /** @description What became of an update. */
        OutcomeView: {
            /** @description False for a retry, and if the privacy policy leaves nothing. */
            applied: boolean;
            /** @description Submitted keys that the privacy policy takes out. */
            filteredKeys: string[];
        };
        /** @description A page of a list. */
        Page_EventView: {
            /** @description The items. */
            items: {
                /** @description Null for what a server sent under an external id. */
                anonymousId?: string | null;
                appVersion?: string | null;
                /** @description When by the client's clock, where that differed from the server's and `timestamp` was corrected. */
                clientTimestamp?: string | null;
                /** Format: uuid */
                eventId: string;
                name: string;
                platform?: string | null;
                properties: Record<string, never>;
                receivedAt: string;
                source: string;
                timestamp: string;
            }[];
            /** @description Continues the list; null at its end. */
            nextCursor?: string | null;
        };
        /** @description A page of a list. */
        Page_UserView: {
            /** @description The items. */
            items: components["schemas"]["UserView"][];
            /** @description Continues the list; null at its end. */
            nextCursor?: string | null;
        };
        /**
         * @description Whether the person lets the app show messages.
         * @enum {string}
         */
        Permission: "granted" | "denied";
        /** @description A survey or message that an SDK was told to show, and how far it came. */
        PersonInstructionView: {
            availableAt: string;
            /** Format: uuid */
            campaignId: string;
            /** Format: int64 */
            campaignVersion: number;
            createdAt: string;
            displayedAt?: string | null;
            expiresAt: string;
            /** Format: uuid */
            instructionId: string;
            /** @description `survey`, `feedback` or `in_app`. */
            kind: string;
            /**
             * @description How far it came: `issued`, `received`, `displayed`, `dismissed`, `clicked`, `discarded` or `completed`; `suppressed` where it
             *     was held back. One that nobody saw in time stays `issued` or `received`.
             */
            status: string;
            statusAt: string;
            /** @description Why the person was not shown it. */
            suppressedBy?: string | null;
            /** @description The name of the event that triggered it. */
            triggerName?: string | null;
            /** Format: uuid */
            variantId?: string | null;
        };
        /** @description Whose data a request is about: exactly one of the two. */
        PersonRequest: {
            /** @description Any anonymous id of the person. */
            anonymousId?: string | null;
            /** @description The customer's own id of the person. */
            externalId?: string | null;
        };
        /** @description The values of a variant's tokens. Resolver plugins may read further members. */
        Personalization: {
            /** @description 32 at the most. */
            bindings?: components["schemas"]["PersonalizationBinding"][];
            /** @description The resolver plugin's configuration. */
            config?: unknown;
            /**
             * @description What becomes of a message that a value is missing for.
             * @enum {string}
             */
            missingData?: "skip" | "fail";
            /** @description A resolver plugin, in place of the app's. */
            plugin?: string;
            /** @description 16 at the most. */
            sources?: components["schemas"]["PersonalizationSource"][];
            /** @description Always 1. */
            version?: number;
        };
        /** @description The value of a token `{{p.<id>}}`. */
        PersonalizationBinding: {
            /** @description The value where there is none, of the same type. Without it a missing value skips the message, or fails it. */
            fallback?: string | number | boolean;
            /** @description How the value is written within a text. */
            format?: {
                /** @description An ISO 4217 code. */
                currency?: string;
                /** @description A BCP 47 tag. */
                locale?: string;
                /**
                 * @description How.
                 * @enum {string}
                 */
                style?: "decimal" | "integer" | "percent" | "currency" | "date" | "datetime";
                /** @description An IANA name. */
                timezone?: string;
            };
            /** @description Its id. */
            id: string;
            /** @description The property or field. */
            key: string;
            /** @description Its name for people. */
            label?: string;
            /** @description The source. */
            sourceId: string;
            /**
             * @description The type that the value must have.
             * @enum {string}
             */
            type: "string" | "number" | "boolean" | "date";
        };
        /** @description Where values come from. Sources of a resolver plugin may have further members. */
        PersonalizationSource: {
            /** @description For `latest_event`: the event. */
            eventName?: string;
            /** @description For `latest_event`: only where its properties are so. */
            filters?: components["schemas"]["Filter"];
            /** @description Its id. */
            id: string;
            /** @description `user_property`, `send_data`, `trigger_event` or `latest_event`. */
            kind: string;
            /** @description Its name for people. */
            label?: string;
            /** @description For `latest_event`: how far back, in days. */
            lookbackDays?: number;
        };
        /** @description A question of the type `picture_choice`. */
        PictureChoiceQuestion: {
            /** @description What else it says. */
            description?: string | null;
            /** @description Its id within the flow. */
            id: string;
            /** @description Whether several can be selected. */
            multiple?: boolean;
            /** @description What can be selected. */
            options: components["schemas"]["QuestionPicture"][];
            /** @description Whether it must be answered. */
            required?: boolean;
            /** @description What it asks. */
            title: string;
            /**
             * @description What kind of answer it takes.
             * @constant
             */
            type: "picture_choice";
            /** @description What limits answers, instead of at the question itself; and `message`. */
            validation?: {
                /** @description Shown where an answer is refused. */
                message?: string;
            } | null;
        };
        /**
         * @description What a device runs.
         * @enum {string}
         */
        Platform: "ios" | "android" | "web";
        /** @description A plugin with its versions. */
        PluginDetailView: components["schemas"]["PluginView"] & {
            health: components["schemas"]["HealthView"];
            lastRollback?: components["schemas"]["Rollback"] | null;
            versions: components["schemas"]["VersionView"][];
        };
        /** @description The plugin that failed, or whose rules an event broke. */
        PluginVersion: {
            /** @description Its name. */
            name: string;
            /** @description Its version. */
            version: string;
        };
        /** @description A plugin. */
        PluginView: {
            activeVersion?: string | null;
            createdAt?: string | null;
            kind: string;
            name: string;
            rollout?: components["schemas"]["RolloutView"] | null;
            /** @description `app`, `server` or `builtin`. */
            scope: string;
            /** @description Whether it decides where no plugin is named. */
            slot: boolean;
            updatedAt?: string | null;
        };
        /** @description Settings of plugins. */
        Plugins: {
            /**
             * Format: int64
             * @description Wall-clock time of a call of a trigger or personalization plugin in milliseconds, likewise.
             * @default null
             */
            deadlineMs: number | null;
            /**
             * Format: int64
             * @description Host functions that a call may call before the allowance for each item and campaign, likewise.
             * @default null
             */
            hostCalls: number | null;
            /**
             * Format: int64
             * @description What is kept of a call's log in bytes, likewise.
             * @default null
             */
            logBytes: number | null;
            /**
             * Format: double
             * @description The share of calls, 0 to 1, that a candidate or a version activated a short while ago may fail before it
             *     is rolled back.
             * @default 0.5
             */
            maxFailureRate: number;
            /**
             * Format: int64
             * @description Memory of a call in bytes, where it is to be less than the server allows.
             * @default null
             */
            memoryBytes: number | null;
            /**
             * Format: int64
             * @description What a call may give to the host in bytes, likewise.
             * @default null
             */
            outputBytes: number | null;
            /**
             * Format: int64
             * @description Wall-clock time of a call of a validation plugin in milliseconds, likewise.
             * @default null
             */
            validationDeadlineMs: number | null;
            /**
             * @description What becomes of events while the validation plugin fails.
             * @default closed
             */
            validationFailure: components["schemas"]["ValidationFailure"];
        };
        /** @description Settings of plugins. */
        PluginsPatch: {
            /**
             * Format: int64
             * @description Wall-clock time of a call of a trigger or personalization plugin in milliseconds, likewise.
             */
            deadlineMs?: number | null;
            /**
             * Format: int64
             * @description Host functions that a call may call before the allowance for each item and campaign, likewise.
             */
            hostCalls?: number | null;
            /**
             * Format: int64
             * @description What is kept of a call's log in bytes, likewise.
             */
            logBytes?: number | null;
            /**
             * Format: double
             * @description The share of calls, 0 to 1, that a candidate or a version activated a short while ago may fail before it
             *     is rolled back.
             */
            maxFailureRate?: number | null;
            /**
             * Format: int64
             * @description Memory of a call in bytes, where it is to be less than the server allows.
             */
            memoryBytes?: number | null;
            /**
             * Format: int64
             * @description What a call may give to the host in bytes, likewise.
             */
            outputBytes?: number | null;
            /**
             * Format: int64
             * @description Wall-clock time of a call of a validation plugin in milliseconds, likewise.
             */
            validationDeadlineMs?: number | null;
            /** @description What becomes of events while the validation plugin fails. */
            validationFailure?: components["schemas"]["ValidationFailure"] | null;
        };
        /** @description Instructions on offer. */
        PollView: {
            items: components["schemas"]["InstructionView"][];
            nextCursor: string;
            /** Format: int32 */
            pollAfterSeconds: number;
        };
        /** @description A variant of a campaign of either type. It describes what is read by the surface. */
        PreviewContent: components["schemas"]["Variant"] | components["schemas"]["InAppVariant"];
        /** @description What to resolve, for whom. */
        PreviewRequest: {
            anonymousId?: string | null;
            /** @description A variant, as campaigns of the surface have it. */
            content: components["schemas"]["PreviewContent"];
            /** @description The data that a request for a send would have. */
            data?: {
                [key: string]: string | number | boolean | null;
            } | null;
            externalId?: string | null;
            /** Format: uuid */
            subjectId?: string | null;
            surface: components["schemas"]["Surface"];
            /**
             * Format: uuid
             * @description The event that would have caused the message.
             */
            triggerEventId?: string | null;
        };
        /** @description A resolved variant. */
        PreviewView: {
            bindings: components["schemas"]["BindingView"][];
            /** @description What is sent or shown; null unless it is ready. */
            content?: components["schemas"]["PushMessage"] | components["schemas"]["MessagePayload"] | null;
            issues: components["schemas"]["IssueView"][];
            /** @description `ready`, `skipped` or `error`. */
            status: string;
        };
        /**
         * @description How urgent a message is.
         * @enum {string}
         */
        Priority: "high" | "normal";
        /** @description Settings of privacy. */
        Privacy: {
            /**
             * @description The only property keys that backends may store; without it, all.
             * @default null
             */
            allowKeys: string[] | null;
            /**
             * @description Property keys that are never stored.
             * @default []
             */
            denyKeys: string[];
        };
        /** @description Settings of privacy. */
        PrivacyPatch: {
            /** @description The only property keys that backends may store; without it, all. */
            allowKeys?: string[] | null;
            /** @description Property keys that are never stored. */
            denyKeys?: string[] | null;
        };
        /** @description The body of every refusal, `application/problem+json`. */
        Problem: {
            /** @description The stable code, see `GET /v1/errors`. */
            code: string;
            /** @description What happened this time. */
            detail: string;
            /** @description What is wrong where. */
            errors?: components["schemas"]["FieldError"][];
            /** @description The request's id, as in `X-Request-Id` and the log. */
            requestId: string;
            /**
             * Format: int32
             * @description The HTTP status.
             */
            status: number;
            /** @description What the code means. */
            title: string;
            /** @description A URI for the code. */
            type: string;
        };
        /** @description Consent as it stands. */
        ProfileConsentView: {
            analytics: boolean;
            messaging: boolean;
            /** @description Null as long as the app's default stands. */
            updatedAt?: string | null;
        };
        /** @description A person's profile. */
        ProfileView: components["schemas"]["UserView"] & {
            consent: components["schemas"]["ProfileConsentView"];
            identified: boolean;
            locale?: string | null;
            timezone?: string | null;
        };
        /** @description How far a job is. */
        Progress: {
            /** Format: int64 */
            done: number;
            /**
             * Format: int64
             * @description Absent until it is known.
             */
            total?: number | null;
        };
        /**
         * @description How progress is shown.
         * @enum {string}
         */
        ProgressStyle: "bar" | "steps" | "percent" | "none";
        /** @description A condition on a person's saved properties. */
        PropertyCondition: {
            /** @description What holds of the properties. */
            filter: components["schemas"]["Filter"];
            /**
             * @description What it is about.
             * @constant
             */
            kind: "user_property";
        };
        /** @description A condition on a person's saved properties. */
        PropertyConditionPatch: {
            /** @description What holds of the properties. */
            filter?: components["schemas"]["FilterPatch"] | null;
            /** @description What it is about. */
            kind?: "user_property" | null;
        };
        /** @description A property of an event. */
        PropertyDefinition: {
            /** @description Its meaning. */
            description?: string | null;
            /** @description The values of an `enum`. */
            enumValues?: string[];
            /** @description Of texts, in characters. */
            maxLength?: number;
            /** @description Of numbers. */
            maximum?: number;
            /** @description Of texts, in characters. */
            minLength?: number;
            /** @description Of numbers. */
            minimum?: number;
            /** @description Its name. */
            name: string;
            /** @description A regular expression that texts match. */
            pattern?: string;
            /** @description An event without it breaks the definition. */
            required?: boolean;
            /**
             * @description Its type.
             * @enum {string}
             */
            type: "string" | "number" | "boolean" | "date" | "enum";
        };
        /** @description A saved property. */
        PropertyView: {
            key: string;
            source: string;
            updatedAt: string;
            value: string | number | boolean | null;
        };
        /** @description A proposal. Without what it was made from, it can be declared as it is. */
        ProposalView: {
            additionalProperties: components["schemas"]["AdditionalProperties"];
            basedOn: components["schemas"]["BasisView"];
            enforcement: components["schemas"]["Enforcement"];
            name: string;
            properties: components["schemas"]["PropertyDefinition"][];
        };
        /**
         * @description A push service.
         * @enum {string}
         */
        Provider: "apns" | "fcm" | "webpush";
        /** @description What people write of a campaign. */
        PushCampaignPatch: {
            /** @description Whom it is for, as the trigger plugin reads it. */
            audience?: components["schemas"]["AudiencePatch"] | null;
            /** @description What it is for. */
            description?: string | null;
            /** @description How often a person gets it. */
            frequencyCap?: components["schemas"]["FrequencyCapPatch"] | null;
            /** @description How it finds its people. */
            mode?: components["schemas"]["CampaignMode"] | null;
            /** @description Its name. */
            name?: string | null;
            options?: components["schemas"]["OptionsPatch"] | null;
            /**
             * Format: int32
             * @description Which comes first when several fire; higher first.
             */
            priority?: number | null;
            /** @description When it may be sent. */
            schedule?: components["schemas"]["SchedulePatch"] | null;
            /** @description Where it stands. */
            status?: components["schemas"]["CampaignStatus"] | null;
            /** @description What triggers it, as the trigger plugin reads it. */
            trigger?: components["schemas"]["TriggerPatch"] | null;
            /** @description Always `push`. */
            type?: components["schemas"]["CampaignKind"] | null;
            /** @description What it says; a person always gets the same one. */
            variants?: components["schemas"]["Variant"][] | null;
        };
        /** @description A campaign as the API shows it. */
        PushCampaignView: components["schemas"]["Content"] & {
            activatedAt?: string | null;
            /** Format: uuid */
            appId: string;
            createdAt: string;
            /** Format: uuid */
            id: string;
            stats: components["schemas"]["Stats"];
            updatedAt: string;
            /** Format: int64 */
            version: number;
        };
        /** @description What browsers need for Web Push. */
        PushConfig: {
            /** @description The `applicationServerKey` of a subscription. */
            vapidPublicKey: string;
        };
        /** @description A push message: everything filled in. */
        PushMessage: {
            /** @description The text. */
            body: string;
            /** @description What opening it does. */
            openAction: components["schemas"]["OpenAction"];
            /** @description How it is delivered and shown. */
            options?: components["schemas"]["Options"];
            /** @description The headline. */
            title: string;
        };
        /** @description How messages reach a device. */
        PushView: {
            /** @description `production` or `sandbox`. */
            environment: string;
            /** @description `apns`, `fcm` or `webpush`. */
            provider: string;
            /** @description `active`, `invalid` or `opted_out`. */
            status: string;
            /** @description The end of its token. */
            tokenSuffix: string;
        };
        /** @description A question; what else it has follows from its `type`. */
        Question: components["schemas"]["NpsQuestion"] | components["schemas"]["RatingQuestion"] | components["schemas"]["CsatQuestion"] | components["schemas"]["CesQuestion"] | components["schemas"]["ThumbsQuestion"] | components["schemas"]["SingleChoiceQuestion"] | components["schemas"]["MultipleChoiceQuestion"] | components["schemas"]["PictureChoiceQuestion"] | components["schemas"]["RankingQuestion"] | components["schemas"]["MatrixQuestion"] | components["schemas"]["ShortTextQuestion"] | components["schemas"]["LongTextQuestion"] | components["schemas"]["NumberQuestion"] | components["schemas"]["DateQuestion"] | components["schemas"]["ConsentQuestion"] | components["schemas"]["ContactInfoQuestion"] | components["schemas"]["StatementQuestion"] | components["schemas"]["LinkQuestion"];
        /** @description A field of contact information. */
        QuestionField: {
            /** @description Its id within the question. */
            id: string;
            /** @description What it says. */
            label: string;
            /** @description Whether it must be filled in. */
            required?: boolean;
        };
        /** @description An option, a row or a column. */
        QuestionItem: {
            /** @description Its id within the question. */
            id: string;
            /** @description What it says. */
            label: string;
        };
        /** @description An option with a picture. */
        QuestionPicture: {
            /** @description Its id within the question. */
            id: string;
            /** @description An http or https address. */
            imageUrl: string;
            /** @description What it says. */
            label: string;
        };
        /** @description Results of a question. */
        QuestionReport: {
            /** @description How often there is which value; with several options selected, shares add up to more than 1. */
            distribution: components["schemas"]["Bar"][];
            /**
             * Format: double
             * @description The mean of answers that are numbers.
             */
            mean?: number | null;
            nps?: components["schemas"]["Nps"] | null;
            /** @description The question. */
            questionId: string;
            /**
             * Format: int64
             * @description How many answered.
             */
            responses: number;
            /**
             * Format: int64
             * @description How many went on without.
             */
            skipped: number;
            /** @description The newest answers, of questions that are answered in words. */
            texts?: string[] | null;
            /** @description What it asks. */
            title: string;
            /** @description Its type. */
            type: components["schemas"]["QuestionType"];
        };
        /**
         * @description The types of questions.
         * @enum {string}
         */
        QuestionType: "nps" | "rating" | "csat" | "ces" | "thumbs" | "single_choice" | "multiple_choice" | "picture_choice" | "ranking" | "matrix" | "short_text" | "long_text" | "number" | "date" | "consent" | "contact_info" | "statement" | "link";
        /** @description A deletion that was queued, or was there already. */
        QueuedDeletionView: {
            /** Format: uuid */
            jobId: string;
            /** @description `queued`, `running` or `analytics_pending`. */
            status: string;
        };
        /** @description An export that was queued. */
        QueuedExportView: {
            /** Format: uuid */
            exportId: string;
            /** @description `queued`. */
            status: string;
        };
        /** @description The job that does it. */
        QueuedView: {
            /** Format: uuid */
            jobId: string;
        };
        /** @description Hours of the day, in the person's own time zone, in which nobody is disturbed. */
        QuietHours: {
            /** @description Their begin, `HH:MM`. */
            from: string;
            /** @description What becomes of a message that falls into them. */
            onQuiet: components["schemas"]["OnQuiet"];
            /** @description Their end, `HH:MM`; the next day's where it is not after the begin. */
            to: string;
        };
        /** @description Hours of the day, in the person's own time zone, in which nobody is disturbed. */
        QuietHoursPatch: {
            /** @description Their begin, `HH:MM`. */
            from?: string | null;
            /** @description What becomes of a message that falls into them. */
            onQuiet?: components["schemas"]["OnQuiet"] | null;
            /** @description Their end, `HH:MM`; the next day's where it is not after the begin. */
            to?: string | null;
        };
        /** @description A question of the type `ranking`. */
        RankingQuestion: {
            /** @description What else it says. */
            description?: string | null;
            /** @description Its id within the flow. */
            id: string;
            /** @description What is put in order. */
            options: components["schemas"]["QuestionItem"][];
            /** @description Whether it must be answered. */
            required?: boolean;
            /** @description What it asks. */
            title: string;
            /**
             * @description What kind of answer it takes.
             * @constant
             */
            type: "ranking";
            /** @description What limits answers, instead of at the question itself; and `message`. */
            validation?: {
                /** @description Shown where an answer is refused. */
                message?: string;
            } | null;
        };
        /** @description A question of the type `rating`. */
        RatingQuestion: {
            /** @description What else it says. */
            description?: string | null;
            /**
             * @description How it is shown.
             * @enum {string}
             */
            display?: "number" | "star" | "emoji";
            /** @description What stands at the most. */
            highLabel?: string;
            /** @description Its id within the flow. */
            id: string;
            /** @description What stands at the least. */
            lowLabel?: string;
            /** @description Whether it must be answered. */
            required?: boolean;
            /**
             * @description The most; 5 unless given. The least is 1.
             * @enum {integer}
             */
            scale?: 3 | 4 | 5 | 6 | 7 | 10;
            /** @description What it asks. */
            title: string;
            /**
             * @description What kind of answer it takes.
             * @constant
             */
            type: "rating";
            /** @description What limits answers, instead of at the question itself; and `message`. */
            validation?: {
                /** @description Shown where an answer is refused. */
                message?: string;
            } | null;
        };
        /** @description What became of a message on a device. */
        Receipt: {
            /** @description Which button was tapped. */
            actionId?: string | null;
            /** @description When, ISO 8601; now unless given. Before the message was sent is when it was sent. */
            at?: string | null;
            /** Format: uuid */
            deliveryId: string;
            type: components["schemas"]["BeaconType"];
        };
        /** @description Proof of a deletion. */
        ReceiptView: {
            /** @description SHA-256 of the signed JSON, in hexadecimal. */
            digest: string;
            /** @description The JSON, signed: a JWS in compact form, to be verified with `/.well-known/jwks.json`. */
            signature: string;
        };
        /** @description What became of messages on a device. */
        ReceiptsRequest: {
            receipts: components["schemas"]["Receipt"][];
        };
        /** @description Which receipts were taken. */
        ReceiptsView: {
            accepted: number;
            /** @description Deliveries that are not the subject's. */
            unknown: string[];
        };
        /** @description Somebody who was to get a campaign. */
        RecipientView: {
            anonymousId?: string | null;
            at: string;
            externalId?: string | null;
            state: string;
            /** Format: uuid */
            subjectId: string;
            suppressedBy?: string | null;
        };
        /** @description What is to be sent again. */
        RecoverRequest: {
            /** @description From here on: an ISO 8601 instant, or a day (UTC); 14 days ago at most. */
            since: string;
        };
        /** @description A recovery that was queued. */
        RecoverView: {
            /**
             * Format: uuid
             * @description The job, as `GET /v1/apps/{appId}/jobs/{id}` shows it.
             */
            jobId: string;
            status: string;
        };
        /** @description Whose properties to update: exactly one of these. */
        Reference: {
            anonymousId?: string | null;
            externalId?: string | null;
            /** Format: uuid */
            subjectId?: string | null;
        };
        /** @description A device's token. What a browser has instead is a subscription. */
        RegisterRequest: {
            /** @description One of the subject's anonymous ids. */
            anonymousId: string;
            /** @description What the SDK calls the device, as in the context of events. */
            deviceId: string;
            environment?: components["schemas"]["Environment"] | null;
            permission?: components["schemas"]["Permission"] | null;
            provider: components["schemas"]["Provider"];
            subscription?: components["schemas"]["SubscriptionRequest"] | null;
            /** @description `apns`, `fcm`. */
            token?: string | null;
        };
        /** @description What became of a registration. */
        RegisteredView: {
            deviceId: string;
            /** @description `active`, or `opted_out` without permission. */
            status: string;
        };
        /** @description Why one event was rejected. */
        Rejection: {
            /** @description A stable reason. */
            code: string;
            /**
             * Format: uuid
             * @description Where it is kept, if it broke its definition.
             */
            deadLetterId?: string | null;
            /**
             * Format: uuid
             * @description Its id, where it has a usable one.
             */
            eventId?: string | null;
            /** @description Its place in the request. */
            index: number;
            /** @description A sentence for a person. */
            message: string;
            /** @description Whether the same event may be accepted later. */
            retryable: boolean;
        };
        /** @description A message with everything filled in: the snapshot that retries send. */
        Rendered: {
            /** @description The text. */
            body: string;
            /** @description What opening it does. */
            openAction: components["schemas"]["OpenAction"];
            /** @description How it is delivered and shown. */
            options?: components["schemas"]["Options"];
            /** @description The headline. */
            title: string;
        };
        /** @description How to replay. */
        ReplayRequest: {
            /** @description A merge patch (RFC 7396) on the event's properties. */
            patch?: {
                [key: string]: unknown;
            } | null;
        };
        /** @description What became of a replay. */
        ReplayView: {
            /** @description Why it fails. */
            reason?: string | null;
            /** @description `replayed` or `still_failing`. */
            status: string;
            violations?: components["schemas"]["Violation"][] | null;
        };
        /** @description Results of a survey. */
        Report: {
            /** @description How far they came, in the order of the survey. */
            funnel: components["schemas"]["Step"][];
            /** @description What was answered. */
            perQuestion: components["schemas"]["QuestionReport"][];
            /**
             * Format: uuid
             * @description The survey.
             */
            surveyId: string;
            /** @description All attempts. */
            totals: components["schemas"]["Totals"];
        };
        /** @description What came of making a decision again. */
        RerunView: {
            /** @description Where they differ, with what was decided then as what is expected. */
            differences: components["schemas"]["Difference"][];
            /**
             * Format: int32
             * @description Questions that the plugin asked now and not then: more than none, and it is not deterministic.
             */
            newQuestions: number;
            /** @description What was decided then: `fired`, `states`, `timers`. */
            recorded: unknown;
            /** @description What is decided now, or `failure` and `detail`. */
            rerun: unknown;
            /** @description Whether it is the same decision. */
            same: boolean;
        };
        /** @description A page of answers. */
        ResponsesView: {
            items: components["schemas"]["AnswerView"][];
            /** Format: int32 */
            limit: number;
            /** Format: int32 */
            page: number;
            /**
             * Format: int64
             * @description How many answers there are; exact up to 10,000.
             */
            total: number;
            /** @description True where there are more than `total` says. */
            totalIsEstimate?: boolean | null;
        };
        /** @description How long things are kept. */
        Retention: {
            /**
             * Format: int64
             * @description Days after its receipt that a dead letter is kept.
             * @default 30
             */
            deadLettersDays: number;
            /**
             * Format: int64
             * @description Days after it was queued that a push delivery is kept; without it, 90.
             * @default null
             */
            deliveriesDays: number | null;
            /**
             * Format: int64
             * @description Days after its receipt that an event is kept; without it, for ever.
             * @default null
             */
            eventsDays: number | null;
        };
        /** @description How long things are kept. */
        RetentionPatch: {
            /**
             * Format: int64
             * @description Days after its receipt that a dead letter is kept.
             */
            deadLettersDays?: number | null;
            /**
             * Format: int64
             * @description Days after it was queued that a push delivery is kept; without it, 90.
             */
            deliveriesDays?: number | null;
            /**
             * Format: int64
             * @description Days after its receipt that an event is kept; without it, for ever.
             */
            eventsDays?: number | null;
        };
        /** @description A roll-back, as it is stored with the plugin and told to people. */
        Rollback: (components["schemas"]["FailureRate"] | null) & {
            /** @description The version that decides since; none: the plugin decides nothing. */
            activeVersion?: string | null;
            /** @description When. */
            at: string;
            /** @description Whether the server did it by itself. */
            automatic: boolean;
            /** @description Why, in a sentence. */
            reason: string;
            /** @description What it was: `active` or `candidate`. */
            role: string;
            /** @description The version that was rolled back. */
            version: string;
        };
        /** @description Which version decides, and which is tried. */
        RolloutView: {
            candidateVersion?: string | null;
            /** Format: int32 */
            percent?: number | null;
            /** @description What a roll-back brings back. */
            previousVersion?: string | null;
            /** @description When the candidate, or without one the active version, came in. */
            since: string;
            /** @description `instant`, `shadow` or `canary`. */
            strategy: string;
        };
        /** @description How a secret is replaced. */
        RotateRequest: {
            /**
             * Format: int64
             * @description How long the old secret signs beside the new one: 0 to 604800, 86400 unless given. Secrets from before it
             *     sign as long as they were to; with 0 none does any longer.
             */
            gracePeriodSeconds?: number | null;
        };
        /** @description An event that would fail. */
        SampleView: {
            /**
             * Format: uuid
             * @description Its id, where it is one that arrived.
             */
            eventId?: string | null;
            source: components["schemas"]["Source"];
            /** @description When it happened, where it is one that arrived. */
            timestamp?: string | null;
            violations: components["schemas"]["Violation"][];
        };
        /** @description When it runs. */
        Schedule: {
            /** @description `monday` to `sunday`, or 1 to 7; all unless given. */
            daysOfWeek?: (string | number)[];
            /**
             * Format: date-time
             * @description Nothing fires from then on, and it is completed.
             */
            endAt?: string;
            /** @description Completes a survey after so many responses. */
            maxResponses?: number;
            /** @description The hours in which nobody is disturbed; the app's unless given. */
            quietHours?: {
                /** @description `HH:MM`. */
                from: string;
                /**
                 * @description Whether a firing waits for the end of these hours or is dropped.
                 * @enum {string}
                 */
                onQuiet?: "defer" | "drop";
                /** @description `HH:MM`; before `from`: over midnight. */
                to: string;
            };
            /**
             * Format: date-time
             * @description Nothing fires before.
             */
            startAt?: string;
            /** @description The hours in which something fires; all unless given. */
            timeWindows?: {
                /** @description `HH:MM`. */
                from: string;
                /** @description `HH:MM`; before `from`: over midnight. */
                to: string;
            }[];
            /** @description `subject`: the person's own, the default; or an IANA name. */
            timezone?: string;
        };
        /** @description When it runs. */
        SchedulePatch: {
            /** @description `monday` to `sunday`, or 1 to 7; all unless given. */
            daysOfWeek?: (string | number)[] | null;
            /**
             * Format: date-time
             * @description Nothing fires from then on, and it is completed.
             */
            endAt?: string | null;
            /** @description Completes a survey after so many responses. */
            maxResponses?: number | null;
            /** @description The hours in which nobody is disturbed; the app's unless given. */
            quietHours?: {
                /** @description `HH:MM`. */
                from?: string | null;
                /** @description Whether a firing waits for the end of these hours or is dropped. */
                onQuiet?: ("defer" | "drop") | null;
                /** @description `HH:MM`; before `from`: over midnight. */
                to?: string | null;
            } | null;
            /**
             * Format: date-time
             * @description Nothing fires before.
             */
            startAt?: string | null;
            /** @description The hours in which something fires; all unless given. */
            timeWindows?: {
                /** @description `HH:MM`. */
                from: string;
                /** @description `HH:MM`; before `from`: over midnight. */
                to: string;
            }[] | null;
            /** @description `subject`: the person's own, the default; or an IANA name. */
            timezone?: string | null;
        };
        /** @description How an SDK should behave. */
        SdkConfig: {
            /** Format: int32 */
            flushAt: number;
            /** Format: int32 */
            flushIntervalSeconds: number;
            immediateTriggers: string[];
            lifecycleEvents: boolean;
            /** Format: int32 */
            pollAfterSeconds: number;
            push?: components["schemas"]["PushConfig"] | null;
            /** Format: int32 */
            sessionTimeoutSeconds: number;
        };
        /** @description An update that an SDK sends for its subject. */
        SdkUpdate: {
            /** @description One of the subject's anonymous ids. */
            anonymousId: string;
            /**
             * Format: uuid
             * @description Sent again, the same update changes nothing more.
             */
            mutationId: string;
            /** @description At most 64 properties: texts, finite numbers, booleans and nulls. */
            set?: {
                [key: string]: string | number | boolean | null;
            } | null;
            /** @description At most 64 keys to remove. */
            unset?: string[] | null;
        };
        /** @description A condition on when a person was seen for the first or the last time. */
        SeenCondition: {
            /**
             * @description What it is about.
             * @enum {string}
             */
            kind: "first_seen" | "last_seen";
            /**
             * @description How the time is compared.
             * @enum {string}
             */
            operator: "before" | "after" | "within_last" | "is_set" | "is_not_set";
            /** @description An ISO 8601 date or date-time; a span for `within_last`. */
            value?: string | components["schemas"]["Span"];
        };
        /** @description A condition on when a person was seen for the first or the last time. */
        SeenConditionPatch: {
            /** @description What it is about. */
            kind?: ("first_seen" | "last_seen") | null;
            /** @description How the time is compared. */
            operator?: ("before" | "after" | "within_last" | "is_set" | "is_not_set") | null;
            /** @description An ISO 8601 date or date-time; a span for `within_last`. */
            value?: string | components["schemas"]["SpanPatch"] | null;
        };
        /** @description Who is in a segment. */
        SegmentAudience: {
            /** @description Who is left out. */
            exclude?: components["schemas"]["AudienceCondition"];
            /** @description Who is in; everybody unless given. */
            include?: components["schemas"]["AudienceCondition"];
        };
        /** @description A condition on a segment. */
        SegmentCondition: {
            /** @description True where the person is in it, false where not. */
            in: boolean;
            /**
             * @description What it is about.
             * @constant
             */
            kind: "segment";
            /**
             * Format: uuid
             * @description The segment.
             */
            segmentId: string;
        };
        /** @description A condition on a segment. */
        SegmentConditionPatch: {
            /** @description True where the person is in it, false where not. */
            in?: boolean | null;
            /** @description What it is about. */
            kind?: "segment" | null;
            /**
             * Format: uuid
             * @description The segment.
             */
            segmentId?: string | null;
        };
        /** @description What people write of a segment. */
        SegmentContent: {
            /** @description Who is in it: `include` and `exclude`, as of an audience. */
            audience: components["schemas"]["Audience"] | null;
            /** @description At most 2,000 characters. */
            description?: string | null;
            /** @description 1 to 200 characters; no other segment of the app has it. */
            name: string;
        };
        /** @description Members of a segment. */
        SegmentMembersView: components["schemas"]["Page_UserView"] & {
            /** @description As of when, at most an hour ago; null until everybody was looked at once. */
            asOf?: string | null;
        };
        /** @description What people write of a segment. */
        SegmentPatch: {
            /** @description Who is in it: `include` and `exclude`, as of an audience. */
            audience?: components["schemas"]["AudiencePatch"] | null;
            /** @description At most 2,000 characters. */
            description?: string | null;
            /** @description 1 to 200 characters; no other segment of the app has it. */
            name?: string | null;
        };
        /** @description Conditions to try. */
        SegmentPreviewInput: {
            /** @description Who would be in the segment: `include` and `exclude`. */
            audience: components["schemas"]["Audience"];
        };
        /** @description Who would be in a segment. */
        SegmentPreviewView: {
            /**
             * Format: int64
             * @description How many people.
             */
            count: number;
            /** @description Whether that is an estimate: of more than 10,000 people only a sample is looked at. */
            isEstimate: boolean;
            /** @description Some who would be in it, 20 at the most. */
            sample: components["schemas"]["UserView"][];
            /**
             * Format: int64
             * @description Of how many.
             */
            total: number;
        };
        /** @description The size of a segment on a day. */
        SegmentSizeView: {
            at: string;
            /** Format: int64 */
            size: number;
        };
        /** @description What names a segment. */
        SegmentUse: {
            /**
             * Format: uuid
             * @description Its id.
             */
            id: string;
            /** @description What it is. */
            kind: components["schemas"]["SegmentUseKind"];
            /** @description What people call it. */
            name: string;
        };
        /**
         * @description What sort of thing names a segment.
         * @enum {string}
         */
        SegmentUseKind: "survey" | "campaign" | "segment";
        /** @description A segment as the API shows it. */
        SegmentView: components["schemas"]["SegmentContent"] & {
            /** Format: uuid */
            appId: string;
            createdAt: string;
            /** Format: uuid */
            id: string;
            /**
             * Format: int64
             * @description How many people are in it; null until everybody was looked at once.
             */
            size?: number | null;
            /** @description As of when, at most an hour ago. */
            sizeAt?: string | null;
            updatedAt: string;
            /** @description What names it. */
            usedBy: components["schemas"]["SegmentUse"][];
            /** Format: int64 */
            version: number;
        };
        /** @description A message to be sent. */
        SendRequest: {
            /** @description Or by an anonymous id. */
            anonymousId?: string | null;
            /**
             * Format: uuid
             * @description A transactional campaign that is active.
             */
            campaignId: string;
            /** @description Flat values that fill `send_data` sources. */
            data?: {
                [key: string]: string | number | boolean | null;
            } | null;
            /** @description Whom it is for, by the customer's own id. */
            externalId?: string | null;
            /** @description Names this send within the app: a second request with it gets the first one's answer. */
            idempotencyKey?: string | null;
        };
        /** @description A message that was queued. */
        SendView: {
            /** Format: uuid */
            campaignId: string;
            createdAt: string;
            /** Format: uuid */
            deliveryId: string;
            duplicate: boolean;
            reason?: string | null;
            /**
             * Format: int64
             * @description Active devices of the person when it was asked for.
             */
            recipients: number;
            status: string;
        };
        /** @description The same for an app that the operator names. */
        ServerBacktestRequest: {
            /**
             * Format: uuid
             * @description The app whose events are run; the job is one of that app.
             */
            appId: string;
            /**
             * Format: uuid
             * @description The only campaign to look at.
             */
            campaignId?: string | null;
            /**
             * Format: int64
             * @description How many events to run at the most.
             */
            limit?: number | null;
            /** @description Events that arrived at or after: an ISO 8601 instant, or a day (UTC). */
            since: string;
            /** @description Events that arrived before: an ISO 8601 instant; or a day, which is included; now unless given. */
            until?: string | null;
        };
        /** @description A request for a session. */
        SessionRequest: {
            anonymousId: string;
            /** Format: uuid */
            clientId?: string | null;
            identityToken?: string | null;
            platform?: string | null;
            /** @description The SDK's version, at most 256 characters. */
            sdkVersion?: string | null;
        };
        /** @description A session. */
        SessionView: {
            /** Format: uuid */
            clientId?: string | null;
            expiresAt: string;
            sdkConfig: components["schemas"]["SdkConfig"];
            serverTime: string;
            subject: components["schemas"]["SubjectView"];
            subjectToken: string;
        };
        /** @description An app's settings. Missing parts have their defaults. */
        Settings: {
            /**
             * @description The pages that may read the SDK routes' answers: origins, or `*` for all.
             * @default [
             *       "*"
             *     ]
             */
            allowedOrigins: string[];
            /**
             * @description Whether consent must be given before anything is stored or shown.
             * @default {
             *       "required": false
             *     }
             */
            consent: components["schemas"]["Consent"];
            /**
             * @description How often people are asked or messaged.
             * @default {
             *       "minSecondsBetweenPresentations": 0
             *     }
             */
            frequency: components["schemas"]["Frequency"];
            /**
             * @description What ingest takes.
             * @default {
             *       "allowUnverifiedServerEvents": false,
             *       "futureWindowSeconds": 86400,
             *       "pastWindowSeconds": 2592000
             *     }
             */
            ingest: components["schemas"]["Ingest"];
            /**
             * @description Whether SDKs send lifecycle events by themselves. While they should not, those that come count as accepted, and
             *     nothing else follows from them.
             * @default true
             */
            lifecycleEvents: boolean;
            /**
             * @description What happens when plugins fail, and what they may use.
             * @default {
             *       "maxFailureRate": 0.5,
             *       "validationFailure": "closed"
             *     }
             */
            plugins: components["schemas"]["Plugins"];
            /**
             * @description Which properties may be stored.
             * @default {
             *       "denyKeys": []
             *     }
             */
            privacy: components["schemas"]["Privacy"];
            /** @default null */
            quietHours: components["schemas"]["QuietHours"] | null;
            /**
             * @description How long things are kept.
             * @default {
             *       "deadLettersDays": 30
             *     }
             */
            retention: components["schemas"]["Retention"];
        };
        /** @description An app's settings. Missing parts have their defaults. */
        SettingsPatch: {
            /** @description The pages that may read the SDK routes' answers: origins, or `*` for all. */
            allowedOrigins?: string[] | null;
            /** @description Whether consent must be given before anything is stored or shown. */
            consent?: components["schemas"]["ConsentPatch"] | null;
            /** @description How often people are asked or messaged. */
            frequency?: components["schemas"]["FrequencyPatch"] | null;
            /** @description What ingest takes. */
            ingest?: components["schemas"]["IngestPatch"] | null;
            /**
             * @description Whether SDKs send lifecycle events by themselves. While they should not, those that come count as accepted, and
             *     nothing else follows from them.
             */
            lifecycleEvents?: boolean | null;
            /** @description What happens when plugins fail, and what they may use. */
            plugins?: components["schemas"]["PluginsPatch"] | null;
            /** @description Which properties may be stored. */
            privacy?: components["schemas"]["PrivacyPatch"] | null;
            quietHours?: components["schemas"]["QuietHoursPatch"] | null;
            /** @description How long things are kept. */
            retention?: components["schemas"]["RetentionPatch"] | null;
        };
        /** @description An app's settings. */
        SettingsView: components["schemas"]["Settings"] & {
            /**
             * Format: int64
             * @description Grows with each change.
             */
            version: number;
        };
        /** @description What a shadow candidate would have decided, against what the active version did, since its trial began. */
        ShadowView: {
            /**
             * Format: int64
             * @description Only the candidate fires, sets a timer that would come due, finds a violation, or makes a message.
             */
            added: number;
            /**
             * Format: int64
             * @description Batches that both were shown.
             */
            calls: number;
            /**
             * Format: int64
             * @description Other violations, states, timers or values; or the active version failed, and the candidate did not.
             */
            changed: number;
            /**
             * Format: int64
             * @description Decisions that the candidate failed on.
             */
            failed: number;
            /**
             * Format: int64
             * @description Only the active version does.
             */
            removed: number;
            /**
             * Format: int64
             * @description Decisions that are the same. Each decision counts once: here, or as `added`, `removed`, `changed` or `failed`.
             */
            same: number;
            /** @description The first differences, at most 100. */
            samples: components["schemas"]["DifferenceView"][];
            /** @description Since when it is tried. */
            since: string;
            /**
             * Format: int64
             * @description Batches that the candidate was not shown, for want of time.
             */
            skipped: number;
        };
        /** @description A question of the type `short_text`. */
        ShortTextQuestion: {
            /** @description What else it says. */
            description?: string | null;
            /**
             * @description What an answer has to look like.
             * @enum {string}
             */
            format?: "email" | "url" | "phone";
            /** @description Its id within the flow. */
            id: string;
            /** @description The most characters; 1,000 unless given. */
            maxLength?: number;
            /** @description The least characters. */
            minLength?: number;
            /** @description What stands in the empty field. */
            placeholder?: string;
            /** @description Whether it must be answered. */
            required?: boolean;
            /** @description What it asks. */
            title: string;
            /**
             * @description What kind of answer it takes.
             * @constant
             */
            type: "short_text";
            /** @description What limits answers, instead of at the question itself; and `message`. */
            validation?: {
                /**
                 * @description What an answer has to look like.
                 * @enum {string}
                 */
                format?: "email" | "url" | "phone";
                /** @description The most characters; 1,000 unless given. */
                maxLength?: number;
                /** @description Shown where an answer is refused. */
                message?: string;
                /** @description The least characters. */
                minLength?: number;
            } | null;
        };
        /** @description A question of the type `single_choice`. */
        SingleChoiceQuestion: {
            /** @description Whether words of one's own are taken. */
            allowOther?: boolean;
            /** @description What else it says. */
            description?: string | null;
            /** @description Its id within the flow. */
            id: string;
            /** @description What can be selected. */
            options: components["schemas"]["QuestionItem"][];
            /** @description Whether it must be answered. */
            required?: boolean;
            /** @description Whether the options come in another order each time. */
            shuffle?: boolean;
            /** @description What it asks. */
            title: string;
            /**
             * @description What kind of answer it takes.
             * @constant
             */
            type: "single_choice";
            /** @description What limits answers, instead of at the question itself; and `message`. */
            validation?: {
                /** @description Shown where an answer is refused. */
                message?: string;
            } | null;
        };
        /** @description What goes into a slot. */
        SlotRequest: {
            /** @description The plugin's name; it may be a built-in one. */
            plugin: string;
        };
        /** @description A slot and the plugin that is in it. */
        SlotView: {
            kind: string;
            plugin: string;
            /** @description Where the plugin comes from: `app`, `server` or `builtin`. */
            scope: string;
            /** @description The version that decides. */
            version: string;
        };
        /**
         * @description Where an event comes from.
         * @enum {string}
         */
        Source: "request" | "event" | "dead_letter";
        /** @description Where a value comes from. */
        SourceView: {
            eventId?: string | null;
            kind: string;
            timestamp?: string | null;
        };
        /** @description A time that has passed. */
        Span: {
            /** @description How many. */
            amount: number;
            /**
             * @description Of what.
             * @enum {string}
             */
            unit: "minutes" | "hours" | "days" | "weeks" | "minute" | "hour" | "day" | "week";
        };
        /** @description A time that has passed. */
        SpanPatch: {
            /** @description How many. */
            amount?: number | null;
            /** @description Of what. */
            unit?: ("minutes" | "hours" | "days" | "weeks" | "minute" | "hour" | "day" | "week") | null;
        };
        /**
         * @description Where an event failed.
         * @enum {string}
         */
        Stage: "validation" | "trigger" | "personalization";
        /** @description A survey to be started. */
        StartRequest: {
            /** @description One of the subject's anonymous ids. */
            anonymousId: string;
            /**
             * Format: uuid
             * @description The SDK's own id of the attempt: sent again, it finds the same attempt.
             */
            clientAttemptId?: string | null;
            /**
             * Format: uuid
             * @description The instruction that it follows. Surveys of the modes `on_demand` and `link_only` need none.
             */
            instructionId?: string | null;
            /**
             * Format: int64
             * @description The survey's version that the person sees, where no instruction other than a button's fixes one. The current
             *     one unless said, or where it never ran.
             */
            surveyVersion?: number | null;
        };
        /** @description A question of the type `statement`. */
        StatementQuestion: {
            /** @description What it says. */
            body?: string;
            /** @description What stands on its button. */
            buttonLabel?: string;
            /** @description What else it says. */
            description?: string | null;
            /** @description Its id within the flow. */
            id: string;
            /** @description Whether it must be answered. */
            required?: boolean;
            /** @description What it asks. */
            title: string;
            /**
             * @description What kind of answer it takes.
             * @constant
             */
            type: "statement";
            /** @description Where it leads. */
            url?: string;
            /** @description What limits answers, instead of at the question itself; and `message`. */
            validation?: {
                /** @description Shown where an answer is refused. */
                message?: string;
            } | null;
        };
        /** @description The numbers of deliveries that came into each state. */
        Stats: {
            /** Format: int64 */
            bounced: number;
            /** Format: int64 */
            cancelled: number;
            /** Format: int64 */
            clicked: number;
            /** Format: int64 */
            delivered: number;
            /** Format: int64 */
            dismissed: number;
            /** Format: int64 */
            displayed: number;
            /** Format: int64 */
            failed: number;
            /** Format: int64 */
            opened: number;
            /** Format: int64 */
            queued: number;
            /** Format: int64 */
            sent: number;
            /** Format: int64 */
            skipped: number;
        };
        /** @description How a definition's events fared in the last 24 hours. */
        StatsView: {
            /**
             * Format: int64
             * @description Events of the name that arrived while the definition was active.
             */
            seen24h: number;
            /**
             * Format: int64
             * @description Those of them that break it.
             */
            violations24h: number;
        };
        /** @description A step of the funnel. */
        Step: {
            /**
             * Format: int64
             * @description How many of them answered.
             */
            answered?: number | null;
            /**
             * Format: double
             * @description Those among the ones that came to it, 0 to 1.
             */
            dropOffRate: number;
            /**
             * Format: int64
             * @description How many went no further.
             */
            droppedOff: number;
            /** @description The question, where it is one. */
            questionId?: string | null;
            /**
             * Format: int64
             * @description How many came to it.
             */
            reached: number;
            /**
             * Format: int64
             * @description How many of them went on without.
             */
            skipped?: number | null;
            /** @description What it is. */
            step: components["schemas"]["StepKind"];
        };
        /**
         * @description What a step of the funnel is.
         * @enum {string}
         */
        StepKind: "shown" | "started" | "question" | "completed";
        /** @description How far the deletion from one store is. */
        StepView: {
            completedAt?: string | null;
            /** Format: int64 */
            deletedCount: number;
            /** @description `pending`, `running` or `completed`. */
            state: string;
            store: string;
        };
        /**
         * @description How a version comes into force.
         * @enum {string}
         */
        StrategyName: "instant" | "shadow" | "canary";
        /** @description Who a session is of. */
        SubjectView: {
            anonymousId: string;
            externalId?: string | null;
            identified: boolean;
            /** Format: uuid */
            subjectId: string;
        };
        /** @description A browser's `PushSubscription`. */
        SubscriptionRequest: {
            endpoint: string;
            keys: components["schemas"]["KeysRequest"];
        };
        /**
         * @description What messages appear on.
         * @enum {string}
         */
        Surface: "push" | "in_app";
        /** @description A condition on what a person did with surveys. */
        SurveyCondition: {
            /**
             * @description What the person did.
             * @enum {string}
             */
            interaction: "shown" | "displayed" | "started" | "answered" | "completed" | "dismissed";
            /**
             * @description What it is about.
             * @constant
             */
            kind: "survey_interaction";
            /** @description The surveys; all unless given. */
            surveyIds?: string[];
            /** @description How far back is looked, in days; without it, for ever. */
            withinDays?: number;
        };
        /** @description A condition on what a person did with surveys. */
        SurveyConditionPatch: {
            /** @description What the person did. */
            interaction?: ("shown" | "displayed" | "started" | "answered" | "completed" | "dismissed") | null;
            /** @description What it is about. */
            kind?: "survey_interaction" | null;
            /** @description The surveys; all unless given. */
            surveyIds?: string[] | null;
            /** @description How far back is looked, in days; without it, for ever. */
            withinDays?: number | null;
        };
        /** @description What people write of a survey. */
        SurveyContent: {
            /** @description Whom it is for, as the trigger plugin reads it. */
            audience?: components["schemas"]["Audience"] | null;
            /** @description What it is for. */
            description?: string | null;
            flow?: components["schemas"]["Flow"] | null;
            /** @description How often a person meets it. */
            frequencyCap?: components["schemas"]["FrequencyCap"] | null;
            localization?: components["schemas"]["Localization"] | null;
            /** @description How it finds its people. */
            mode?: components["schemas"]["Mode"];
            /** @description Its name. */
            name: string;
            /**
             * Format: int32
             * @description Which comes first when several fire; higher first.
             */
            priority?: number;
            /** @description When it runs. */
            schedule?: components["schemas"]["Schedule"] | null;
            /**
             * @description How it behaves: `{presentation?, position?, closeable?, delaySeconds?, once?, coordinated?}`. Other members are handed to the SDK as they
             *     are, and limited as `theme` is. With `coordinated: true`, instructions come with an attempt.
             */
            settings?: components["schemas"]["SurveySettings"] | null;
            /** @description Where it stands. */
            status?: components["schemas"]["CampaignStatus"];
            /**
             * @description How it looks: `{mode?, background?, text?, primary?, onPrimary?, dark?, radius?, font?, allowLowContrast?}`; text needs a contrast
             *     of 4.5:1 to its ground. Other members are handed to the SDK as they are. An object of at most 256 members and 64 KiB.
             */
            theme?: components["schemas"]["Theme"] | null;
            /** @description What triggers it, as the trigger plugin reads it. */
            trigger?: components["schemas"]["Trigger"] | null;
        };
        /** @description What people write of a survey. */
        SurveyPatch: {
            /** @description Whom it is for, as the trigger plugin reads it. */
            audience?: components["schemas"]["AudiencePatch"] | null;
            /** @description What it is for. */
            description?: string | null;
            flow?: components["schemas"]["FlowPatch"] | null;
            /** @description How often a person meets it. */
            frequencyCap?: components["schemas"]["FrequencyCapPatch"] | null;
            localization?: components["schemas"]["LocalizationPatch"] | null;
            /** @description How it finds its people. */
            mode?: components["schemas"]["Mode"] | null;
            /** @description Its name. */
            name?: string | null;
            /**
             * Format: int32
             * @description Which comes first when several fire; higher first.
             */
            priority?: number | null;
            /** @description When it runs. */
            schedule?: components["schemas"]["SchedulePatch"] | null;
            /**
             * @description How it behaves: `{presentation?, position?, closeable?, delaySeconds?, once?, coordinated?}`. Other members are handed to the SDK as they
             *     are, and limited as `theme` is. With `coordinated: true`, instructions come with an attempt.
             */
            settings?: components["schemas"]["SurveySettingsPatch"] | null;
            /** @description Where it stands. */
            status?: components["schemas"]["CampaignStatus"] | null;
            /**
             * @description How it looks: `{mode?, background?, text?, primary?, onPrimary?, dark?, radius?, font?, allowLowContrast?}`; text needs a contrast
             *     of 4.5:1 to its ground. Other members are handed to the SDK as they are. An object of at most 256 members and 64 KiB.
             */
            theme?: components["schemas"]["ThemePatch"] | null;
            /** @description What triggers it, as the trigger plugin reads it. */
            trigger?: components["schemas"]["TriggerPatch"] | null;
        };
        /** @description A survey as SDKs get it: without what decides whom it is for. */
        SurveyPayload: {
            /** @description What it asks, in the person's language. */
            flow: components["schemas"]["Flow"] | null;
            /**
             * Format: uuid
             * @description The survey.
             */
            id: string;
            /** @description Of one with translations: the language that most of its text is of. */
            locale?: string;
            /** @description Its name. */
            name: string;
            /** @description How it behaves. */
            settings?: components["schemas"]["SurveySettings"];
            /** @description How it looks. */
            theme?: components["schemas"]["Theme"];
            /** @description Its version. */
            version: number;
        };
        /** @description How a survey behaves. Other members are handed to SDKs as they are. */
        SurveySettings: {
            /** @description It can be closed without an answer; true unless given. */
            closeable?: boolean;
            /** @description Instructions come with an attempt that has begun. */
            coordinated?: boolean;
            /** @description The SDK waits so long before it shows it. */
            delaySeconds?: number;
            /** @description Of feedback: it is offered no longer once it was completed. */
            once?: boolean;
            /**
             * @description Where.
             * @enum {string}
             */
            position?: "top_left" | "top_right" | "bottom_left" | "bottom_right" | "center";
            /**
             * @description How it is shown.
             * @enum {string}
             */
            presentation?: "popover" | "modal" | "inline" | "feedback_button";
        };
        /** @description How a survey behaves. Other members are handed to SDKs as they are. */
        SurveySettingsPatch: {
            /** @description It can be closed without an answer; true unless given. */
            closeable?: boolean | null;
            /** @description Instructions come with an attempt that has begun. */
            coordinated?: boolean | null;
            /** @description The SDK waits so long before it shows it. */
            delaySeconds?: number | null;
            /** @description Of feedback: it is offered no longer once it was completed. */
            once?: boolean | null;
            /** @description Where. */
            position?: ("top_left" | "top_right" | "bottom_left" | "bottom_right" | "center") | null;
            /** @description How it is shown. */
            presentation?: ("popover" | "modal" | "inline" | "feedback_button") | null;
        };
        /** @description A survey as the API shows it. */
        SurveyView: components["schemas"]["SurveyContent"] & {
            activatedAt?: string | null;
            /** Format: uuid */
            appId: string;
            createdAt: string;
            /** Format: uuid */
            id: string;
            updatedAt: string;
            /** Format: int64 */
            version: number;
        };
        /** @description Where a branch leads. */
        Target: {
            /** @description To a question. */
            questionId: string;
        } | {
            /** @description To an end screen. */
            endScreenId: string;
        };
        /** @description Cases to be run. */
        TestRequest: {
            /** @description 1 to 50 cases. */
            cases: components["schemas"]["Case"][];
        };
        /** @description Whom to send a campaign to. */
        TestSendRequest: {
            /** @description By an anonymous id. */
            anonymousId: string;
            /** @description Tests have none. */
            data?: unknown;
            /**
             * Format: uuid
             * @description Which variant; the one that the person would get unless given.
             */
            variantId?: string | null;
        };
        /** @description A test of a push campaign that was queued. */
        TestSendView: {
            content?: components["schemas"]["Rendered"] | null;
            /** Format: uuid */
            deliveryId: string;
            /** @description How many devices it goes to. */
            devices: number;
            reason?: string | null;
            status: string;
        };
        /** @description What became of each case, in the same order. */
        TestView: {
            cases: components["schemas"]["CaseView"][];
        };
        /** @description A condition on a text. */
        TextFilter: {
            /**
             * @description How the property is compared; `is_set` and `is_not_set` take no `value`.
             * @enum {string}
             */
            operator: "equals" | "not_equals" | "in" | "not_in" | "contains" | "not_contains" | "starts_with" | "ends_with" | "matches" | "is_set" | "is_not_set";
            /** @description The property; nested ones by dots, `cart.total`. A value of another type is no match. */
            property: string;
            /**
             * @description The type that the property must have.
             * @constant
             */
            type: "string";
            /** @description A text; a list of texts for `in` and `not_in`; a regular expression for `matches`. */
            value?: string | string[];
        };
        /** @description A condition on a text. */
        TextFilterPatch: {
            /** @description How the property is compared; `is_set` and `is_not_set` take no `value`. */
            operator?: ("equals" | "not_equals" | "in" | "not_in" | "contains" | "not_contains" | "starts_with" | "ends_with" | "matches" | "is_set" | "is_not_set") | null;
            /** @description The property; nested ones by dots, `cart.total`. A value of another type is no match. */
            property?: string | null;
            /** @description The type that the property must have. */
            type?: "string" | null;
            /** @description A text; a list of texts for `in` and `not_in`; a regular expression for `matches`. */
            value?: string | string[] | null;
        };
        /** @description How it looks. Text needs a contrast of 4.5:1 to its ground unless `allowLowContrast`. Other members are handed to SDKs as they are; 256 members and 64 KiB at the most. */
        Theme: {
            /** @description Colours may be hard to read. */
            allowLowContrast?: boolean;
            /** @description The ground. */
            background?: string;
            /** @description The colours in the dark. */
            dark?: {
                /** @description The ground. */
                background?: string;
                /** @description Text of buttons. */
                onPrimary?: string;
                /** @description Buttons. */
                primary?: string;
                /** @description Text on the ground. */
                text?: string;
            };
            /**
             * @description The typeface.
             * @enum {string}
             */
            font?: "system" | "serif" | "mono" | "inherit";
            /**
             * @description Which colours; `auto` follows the device.
             * @enum {string}
             */
            mode?: "auto" | "light" | "dark";
            /** @description Text of buttons. */
            onPrimary?: string;
            /** @description Buttons. */
            primary?: string;
            /** @description Of corners, in pixels. */
            radius?: number;
            /** @description Text on the ground. */
            text?: string;
        };
        /** @description How it looks. Text needs a contrast of 4.5:1 to its ground unless `allowLowContrast`. Other members are handed to SDKs as they are; 256 members and 64 KiB at the most. */
        ThemePatch: {
            /** @description Colours may be hard to read. */
            allowLowContrast?: boolean | null;
            /** @description The ground. */
            background?: string | null;
            /** @description The colours in the dark. */
            dark?: {
                /** @description The ground. */
                background?: string | null;
                /** @description Text of buttons. */
                onPrimary?: string | null;
                /** @description Buttons. */
                primary?: string | null;
                /** @description Text on the ground. */
                text?: string | null;
            } | null;
            /** @description The typeface. */
            font?: ("system" | "serif" | "mono" | "inherit") | null;
            /** @description Which colours; `auto` follows the device. */
            mode?: ("auto" | "light" | "dark") | null;
            /** @description Text of buttons. */
            onPrimary?: string | null;
            /** @description Buttons. */
            primary?: string | null;
            /** @description Of corners, in pixels. */
            radius?: number | null;
            /** @description Text on the ground. */
            text?: string | null;
        };
        /** @description A question of the type `thumbs`. */
        ThumbsQuestion: {
            /** @description What else it says. */
            description?: string | null;
            /** @description Its id within the flow. */
            id: string;
            /** @description Whether it must be answered. */
            required?: boolean;
            /** @description What it asks. */
            title: string;
            /**
             * @description What kind of answer it takes.
             * @constant
             */
            type: "thumbs";
            /** @description What limits answers, instead of at the question itself; and `message`. */
            validation?: {
                /** @description Shown where an answer is refused. */
                message?: string;
            } | null;
        };
        /** @description A page of a person's events. */
        TimelineView: components["schemas"]["Page_EventView"] & {
            /** @description As what the id in the path was found. Somebody else may have it as the other kind of id. */
            matchedBy: components["schemas"]["IdKind"];
        };
        /** @description A timer. */
        TimerView: {
            /** @description How long its payload is. */
            bytes: number;
            /** @description When it fires; null: it waits until its campaign, which is paused, runs again. */
            dueAt?: string | null;
            key: string;
            /** @description The payload, where it is JSON. */
            payloadJson?: unknown;
        };
        /** @description Results of all attempts. */
        Totals: {
            /**
             * Format: int64
             * @description Those that were dismissed, or silent for 30 minutes.
             */
            abandoned: number;
            /**
             * Format: int64
             * @description Complete ones.
             */
            completed: number;
            /**
             * Format: double
             * @description Complete ones among those that were started, 0 to 1.
             */
            completionRate: number;
            /**
             * Format: int64
             * @description How often the survey was shown.
             */
            shown: number;
            /**
             * Format: int64
             * @description Attempts.
             */
            started: number;
        };
        /** @description A state that a delivery came into. */
        TransitionView: {
            at: string;
            status: string;
        };
        /** @description What starts a campaign for a person. Plugins of trigger logic may read further members. */
        Trigger: {
            /** @description For `schedule`: the time of day, `HH:MM`. */
            at?: string;
            /** @description Events that cancel the firing during the delay. */
            cancelOn?: components["schemas"]["Cancellation"][];
            /** @description For `plugin`: the plugin's configuration. */
            config?: unknown;
            /** @description For `schedule` of a month: the day. */
            dayOfMonth?: number;
            /** @description For `schedule` of a week: `monday` to `sunday`. */
            dayOfWeek?: string;
            /** @description The pause between the event and the firing, in seconds. */
            delaySeconds?: number;
            /** @description For `event`: its name. */
            eventName?: string;
            /**
             * @description For `schedule`: how often. Without it the campaign runs once, at its start.
             * @enum {string}
             */
            every?: "day" | "week" | "month";
            /** @description Only where the event's properties are so. */
            filters?: components["schemas"]["Filter"];
            /** @description For `property_changed`: only from this value. Null: only where it had none. */
            from?: string | number | boolean | null;
            /** @description For `property_changed`: with true as `from: null`, which a change of the campaign can't say: null removes there. It is read, never shown; `from` beside it does not count. */
            fromMissing?: boolean;
            /** @description For `property_changed`: the property. */
            key?: string;
            /**
             * @description What it waits for. `plugin` names a plugin that decides in place of the app's.
             * @enum {string}
             */
            kind: "event" | "screen_view" | "session_start" | "property_changed" | "segment" | "schedule" | "manual" | "plugin";
            /** @description How often the same event fires; `every` unless given. */
            occurrence?: components["schemas"]["Occurrence"];
            /**
             * @description For `segment`: whether it fires for whom enters or for whom leaves.
             * @enum {string}
             */
            on?: "enter" | "exit";
            /** @description For `plugin`: the plugin that decides. */
            plugin?: string;
            /** @description For `screen_view`: the screen. */
            screenName?: string;
            /**
             * Format: uuid
             * @description For `segment`: the segment.
             */
            segmentId?: string;
            /** @description For `property_changed`: only to this value. Null: only where it has none any longer. */
            to?: string | number | boolean | null;
            /** @description For `property_changed`: with true as `to: null`, likewise. */
            toMissing?: boolean;
        };
        /** @description What starts a campaign for a person. Plugins of trigger logic may read further members. */
        TriggerPatch: {
            /** @description For `schedule`: the time of day, `HH:MM`. */
            at?: string | null;
            /** @description Events that cancel the firing during the delay. */
            cancelOn?: components["schemas"]["Cancellation"][] | null;
            /** @description For `plugin`: the plugin's configuration. */
            config?: unknown;
            /** @description For `schedule` of a month: the day. */
            dayOfMonth?: number | null;
            /** @description For `schedule` of a week: `monday` to `sunday`. */
            dayOfWeek?: string | null;
            /** @description The pause between the event and the firing, in seconds. */
            delaySeconds?: number | null;
            /** @description For `event`: its name. */
            eventName?: string | null;
            /** @description For `schedule`: how often. Without it the campaign runs once, at its start. */
            every?: ("day" | "week" | "month") | null;
            /** @description Only where the event's properties are so. */
            filters?: components["schemas"]["FilterPatch"] | null;
            /** @description For `property_changed`: only from this value. Null: only where it had none. */
            from?: string | number | boolean | null;
            /** @description For `property_changed`: with true as `from: null`, which a change of the campaign can't say: null removes there. It is read, never shown; `from` beside it does not count. */
            fromMissing?: boolean | null;
            /** @description For `property_changed`: the property. */
            key?: string | null;
            /** @description What it waits for. `plugin` names a plugin that decides in place of the app's. */
            kind?: ("event" | "screen_view" | "session_start" | "property_changed" | "segment" | "schedule" | "manual" | "plugin") | null;
            /** @description How often the same event fires; `every` unless given. */
            occurrence?: components["schemas"]["OccurrencePatch"] | null;
            /** @description For `segment`: whether it fires for whom enters or for whom leaves. */
            on?: ("enter" | "exit") | null;
            /** @description For `plugin`: the plugin that decides. */
            plugin?: string | null;
            /** @description For `screen_view`: the screen. */
            screenName?: string | null;
            /**
             * Format: uuid
             * @description For `segment`: the segment.
             */
            segmentId?: string | null;
            /** @description For `property_changed`: only to this value. Null: only where it has none any longer. */
            to?: string | number | boolean | null;
            /** @description For `property_changed`: with true as `to: null`, likewise. */
            toMissing?: boolean | null;
        };
        /** @description The event that fired an instruction. */
        TriggerView: {
            /** Format: uuid */
            eventId: string;
            name: string;
        };
        /** @description A change of an app. */
        UpdateAppRequest: {
            name?: string | null;
        };
        /** @description What to update. */
        UpdateBody: {
            /**
             * Format: uuid
             * @description Sent again, the same update changes nothing more.
             */
            mutationId: string;
            /** @description At most 64 properties: texts, finite numbers, booleans and nulls. */
            set?: {
                [key: string]: string | number | boolean | null;
            } | null;
            /** @description At most 64 keys to remove. */
            unset?: string[] | null;
        };
        /** @description A person. */
        UserDetail: {
            devices: components["schemas"]["DeviceView"][];
            /** @description As what the id in the path was found. Somebody else may have it as the other kind of id. */
            matchedBy: components["schemas"]["IdKind"];
            profile: components["schemas"]["ProfileView"];
            properties: components["schemas"]["PropertyView"][];
        };
        /** @description People, the one that was made last first. */
        UserPage: {
            items: components["schemas"]["UserView"][];
            nextCursor?: string | null;
            /**
             * Format: int64
             * @description How many there are, up to 10,000; counted for the first page.
             */
            total: number;
            /** @description Present and true if there may be more. */
            totalIsEstimate?: boolean;
        };
        /** @description A person in a list. */
        UserView: {
            /** @description The oldest anonymous id; null for who is known by server-side events only. */
            anonymousId?: string | null;
            anonymousIds: string[];
            /** @description Two letters: where the newest time zone is that an event told. */
            country?: string | null;
            /** Format: int64 */
            eventCount: number;
            externalId?: string | null;
            firstSeenAt: string;
            lastSeenAt: string;
            platform?: string | null;
            /** Format: uuid */
            subjectId: string;
            /** @description The first 20 saved properties by key, but for those of more than 1,024 characters. */
            topProperties: {
                [key: string]: string | number | boolean | null;
            };
        };
        /**
         * @description What becomes of events while the validation plugin fails.
         * @enum {string}
         */
        ValidationFailure: "closed" | "open";
        /** @description A plugin that a definition names, and its configuration. */
        Validator: {
            /** @description What the plugin gets. */
            config?: unknown;
            /** @description The plugin's name. */
            plugin: string;
        };
        /** @description A plugin that a definition names, and its configuration. */
        ValidatorPatch: {
            /** @description What the plugin gets. */
            config?: unknown;
            /** @description The plugin's name. */
            plugin?: string | null;
        };
        Value: unknown;
        /** @description A VAPID key, or the wish for one. */
        VapidRequest: {
            /** @description Whether the server makes the key. */
            generate?: boolean | null;
            /** @description 32 bytes in URL-safe Base64. */
            privateKey?: string | null;
            /** @description A point of P-256, uncompressed, in URL-safe Base64. */
            publicKey?: string | null;
            /** @description A `mailto:` or `https:` URL. */
            subject?: string | null;
        };
        /** @description One way to say it. */
        Variant: {
            /** @description The text; may have tokens. */
            body?: string;
            /**
             * Format: uuid
             * @description Its id; made when it is missing.
             */
            id?: string | null;
            openAction?: components["schemas"]["OpenAction"] | null;
            /** @description What its tokens stand for, as the personalization plugin reads it. */
            personalization?: components["schemas"]["Personalization"] | null;
            /** @description The headline; may have tokens. */
            title?: string;
            /**
             * Format: double
             * @description Its share of the people, in proportion to the others'.
             */
            weight?: number;
        };
        /** @description What became of a variant. */
        VariantCounts: components["schemas"]["CampaignCounts"] & {
            /** Format: uuid */
            variantId: string;
        };
        /** @description A condition on the version of the app that a person has. */
        VersionCondition: {
            /**
             * @description What it is about.
             * @constant
             */
            kind: "app_version";
            /**
             * @description How the version is compared.
             * @enum {string}
             */
            operator: "eq" | "neq" | "gt" | "gte" | "lt" | "lte";
            /** @description A version such as `2.10.0`. */
            value: string;
        };
        /** @description A condition on the version of the app that a person has. */
        VersionConditionPatch: {
            /** @description What it is about. */
            kind?: "app_version" | null;
            /** @description How the version is compared. */
            operator?: ("eq" | "neq" | "gt" | "gte" | "lt" | "lte") | null;
            /** @description A version such as `2.10.0`. */
            value?: string | null;
        };
        /** @description How a version fared. */
        VersionMetricsView: {
            /**
             * Format: int64
             * @description Calls that decided or failed.
             */
            calls: number;
            /**
             * Format: double
             * @description Failed calls among all, 0 to 1. Those that failed by their deadline because the machine was busy do not
             *     count.
             */
            failureRate: number;
            /** @description Failed calls by reason: `trap`, `deadline`, `memory`, `output_too_large`, `refused`. */
            failures: {
                [key: string]: number;
            };
            /**
             * Format: int64
             * @description Events, timers or recipients that they were about.
             */
            items: number;
            latencyMicros: components["schemas"]["LatencyView"];
            /** Format: int64 */
            memoryPeakBytes: number;
            /**
             * Format: int64
             * @description Calls besides that were made again: they hardly ran before their deadline, or what followed from them could
             *     not be written.
             */
            retried: number;
            shadow?: components["schemas"]["ShadowView"] | null;
            /**
             * Format: int64
             * @description Calls besides that failed on a batch, whose parts were then tried on their own.
             */
            takenApart: number;
            version: string;
        };
        /** @description A version of a plugin. */
        VersionView: {
            checks: components["schemas"]["Check"][];
            /** @description A JSON Schema. */
            configSchema?: unknown;
            description?: string | null;
            /** @description The component's SHA-256, in hexadecimal. */
            digest: string;
            imports: string[];
            /** @description `trigger`, `personalization` or `validation`. */
            kind: string;
            name: string;
            /** Format: int64 */
            sizeBytes?: number | null;
            /** @description `ready`: it can be activated. */
            state: string;
            uploadedAt?: string | null;
            uploadedBy?: string | null;
            version: string;
        };
        /** @description One way in which an event breaks its definition. */
        Violation: {
            /** @description What the event has. */
            actual: string;
            /** @description A stable reason. */
            code: string;
            /** @description What the definition asks for. */
            expected: string;
            /** @description The property. */
            property: string;
        };
        /** @description A time that a message was sent. */
        WebhookAttemptView: {
            at: string;
            /** Format: int64 */
            attempt: number;
            error?: string | null;
            eventType: string;
            /** Format: uuid */
            id: string;
            /** Format: int64 */
            latencyMs: number;
            /** Format: uuid */
            messageId: string;
            nextAttemptAt?: string | null;
            /** Format: int64 */
            statusCode?: number | null;
        };
        /** @description An event that became a dead letter. Its properties stay in the letter. */
        WebhookDeadLetterData: {
            /**
             * Format: uuid
             * @description The campaign that it failed for.
             */
            campaignId?: string;
            /**
             * Format: uuid
             * @description The letter.
             */
            deadLetterId: string;
            /** @description What the plugin said. */
            detail?: string;
            /**
             * Format: uuid
             * @description The event.
             */
            eventId: string;
            /** @description Its name. */
            eventName: string;
            /** @description The plugin that failed on it. */
            plugin?: {
                /** @description Its name. */
                name: string;
                /** @description Its version. */
                version: string;
            };
            /** @description Why. */
            reason: string;
            /**
             * Format: date-time
             * @description When the event came.
             */
            receivedAt: string;
            /**
             * @description Where it failed.
             * @enum {string}
             */
            stage: "validation" | "trigger" | "personalization";
            /**
             * Format: uuid
             * @description The person.
             */
            subjectId: string;
        };
        /** @description A message's way to one person. */
        WebhookDeliveryData: {
            /** @description For `clicked`: the button. */
            actionId?: string;
            /** @description The id of the person's browser or device. */
            anonymousId: string | null;
            /**
             * Format: date-time
             * @description For `bounced`: when.
             */
            bouncedAt?: string;
            /**
             * Format: uuid
             * @description The campaign.
             */
            campaignId: string;
            /**
             * Format: date-time
             * @description For `clicked`: when.
             */
            clickedAt?: string;
            /**
             * Format: date-time
             * @description For `delivered`: when.
             */
            deliveredAt?: string;
            /**
             * Format: uuid
             * @description The message.
             */
            deliveryId: string;
            /**
             * Format: date-time
             * @description For `dismissed`: when.
             */
            dismissedAt?: string;
            /**
             * Format: date-time
             * @description For `displayed`: when.
             */
            displayedAt?: string;
            /** @description The customer's id of the person, where there is one. */
            externalId?: string;
            /**
             * Format: date-time
             * @description For `failed`: when.
             */
            failedAt?: string;
            /**
             * Format: date-time
             * @description For `opened`: when.
             */
            openedAt?: string;
            /** @description What the device runs. */
            platform: string | null;
            /** @description For `delivered`: the push service's id of the message. */
            providerMessageId?: string;
            /** @description For `bounced` and `failed`: why. */
            reason?: string;
            /**
             * Format: date-time
             * @description For `sent`: when.
             */
            sentAt?: string;
            /**
             * Format: uuid
             * @description The person.
             */
            subjectId: string;
            /** @description It is a test. */
            test: boolean;
            /**
             * Format: uuid
             * @description What was sent of it.
             */
            variantId: string;
        };
        /** @description How a webhook fares. */
        WebhookHealthView: {
            /**
             * Format: int64
             * @description Failed attempts since the last one that succeeded.
             */
            consecutiveFailures: number;
            /** @description Why an attempt failed last. */
            lastError?: string | null;
            lastFailureAt?: string | null;
            /**
             * Format: int64
             * @description The status that was answered last.
             */
            lastStatusCode?: number | null;
            lastSuccessAt?: string | null;
            state: components["schemas"]["HealthState"];
        };
        /** @description What an endpoint is sent. */
        WebhookMessage: {
            /**
             * Format: uuid
             * @description The app.
             */
            app_id: string;
            /** @description What happened, by the type. */
            data: Record<string, never>;
            /** @description Its type. */
            event: string;
            /**
             * Format: date-time
             * @description When it happened.
             */
            fired_at: string;
            /**
             * Format: uuid
             * @description The message's id, the same on each retry.
             */
            id: string;
        };
        /** @description What of a webhook can be changed. */
        WebhookPatch: {
            active?: boolean | null;
            description?: string | null;
            /**
             * @description What it is told of: `sent`, `delivered`, `displayed`, `opened`, `clicked`, `dismissed`, `bounced`, `failed` of deliveries;
             *     `plugin.rolled_back`, `plugin.degraded`, `dead_letter.created`.
             */
            eventTypes?: string[] | null;
            /** @description Where requests go: `https`, on the public internet. */
            url?: string | null;
        };
        /** @description A plugin's version that was rolled back, or that fails too often. */
        WebhookPluginData: {
            /** @description For `plugin.rolled_back`: the version that decides since. */
            activeVersion?: string | null;
            /** @description For `plugin.rolled_back`: the server did it by itself. */
            automatic?: boolean;
            /** @description Calls that were looked at. */
            calls?: number;
            /**
             * Format: date-time
             * @description For `plugin.degraded`: when it was noticed.
             */
            degradedAt?: string;
            /** @description Their share, 0 to 1. */
            failureRate?: number;
            /** @description Those that failed. */
            failures?: number;
            /**
             * @description What it decides.
             * @enum {string}
             */
            kind: "trigger" | "personalization" | "validation";
            /** @description The share that may fail. */
            maxFailureRate?: number;
            /** @description The plugin. */
            plugin: string;
            /** @description Why, in a sentence. */
            reason: string;
            /**
             * @description For `plugin.rolled_back`: what it was.
             * @enum {string}
             */
            role?: "active" | "candidate";
            /**
             * Format: date-time
             * @description For `plugin.rolled_back`: when.
             */
            rolledBackAt?: string;
            /** @description The version that was rolled back, or that fails. */
            version: string;
        };
        /** @description What of a webhook can be changed. */
        WebhookRequest: {
            active?: boolean;
            description?: string;
            /**
             * @description What it is told of: `sent`, `delivered`, `displayed`, `opened`, `clicked`, `dismissed`, `bounced`, `failed` of deliveries;
             *     `plugin.rolled_back`, `plugin.degraded`, `dead_letter.created`.
             */
            eventTypes: string[];
            /** @description Where requests go: `https`, on the public internet. */
            url: string;
        };
        /** @description A message that is sent once more. */
        WebhookRetryView: {
            /** Format: uuid */
            messageId: string;
            status: string;
        };
        /** @description What came of a test. */
        WebhookTestView: {
            /** @description Why it did not arrive. */
            error?: string | null;
            /** Format: int64 */
            latencyMs: number;
            /**
             * Format: int32
             * @description What was answered; absent if no whole answer came.
             */
            statusCode?: number | null;
        };
        /** @description A webhook. */
        WebhookView: {
            active: boolean;
            createdAt: string;
            description: string;
            eventTypes: components["schemas"]["EventType"][];
            health: components["schemas"]["WebhookHealthView"];
            /** Format: uuid */
            id: string;
            /** @description `whsec_` and the Base64 of the 32 bytes that requests are signed with. Only where it is new. */
            secret?: string | null;
            updatedAt: string;
            url: string;
            /** Format: int64 */
            version: number;
        };
    };
    responses: {
        /** @description The request can't be read: its JSON, encoding, cursor or credentials. See `code` and /v1/errors. */
        BadRequest: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The state of what it is about does not allow it. See `code` and /v1/errors. */
        Conflict: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The credential works, but not for this. See `code` and /v1/errors. */
        Forbidden: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description A defect in the server; the request id finds it in the log. See `code` and /v1/errors. */
        InternalServerError: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description There is no such thing, or not for the caller. See `code` and /v1/errors. */
        NotFound: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The body is over the limit. See `code` and /v1/errors. */
        PayloadTooLarge: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `If-Match` names another version than the current one. See `code` and /v1/errors. */
        PreconditionFailed: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The server can't do it now; try again after `Retry-After`. See `code` and /v1/errors. */
        ServiceUnavailable: {
            headers: {
                /** @description Seconds until the next try. */
                "Retry-After"?: number;
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description One request too many; the next may come after `Retry-After`. See `code` and /v1/errors. */
        TooManyRequests: {
            headers: {
                /** @description Seconds until the next try. */
                "Retry-After"?: number;
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The credential is missing or does not work. See `code` and /v1/errors. */
        Unauthorized: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The request breaks the contract; `errors` says where. See `code` and /v1/errors. */
        UnprocessableEntity: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The body's media type or encoding is none of those taken. See `code` and /v1/errors. */
        UnsupportedMediaType: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    list_apps: {
        parameters: {
            query?: {
                /** @description How many items, 1 to 200; 50 unless given. */
                limit?: number;
                /** @description Where to go on: `nextCursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Page_ListedApp"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    create_app: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateAppRequest"];
            };
        };
        responses: {
            /** @description Created. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_AppView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    get_app: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_AppView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    delete_app: {
        parameters: {
            query?: never;
            header?: {
                /** @description The versions of which the caller expects one, in quotes. */
                "If-Match"?: string;
            };
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["PreconditionFailed"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    update_app: {
        parameters: {
            query?: never;
            header?: {
                /** @description The versions of which the caller expects one, in quotes. */
                "If-Match"?: string;
            };
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["UpdateAppRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_AppView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    list_attempts: {
        parameters: {
            query: {
                /** @description The person. */
                subjectId: string;
                /** @description How many items, 1 to 200; 50 unless given. */
                limit?: number;
                /** @description Where to go on: `nextCursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Page_AttemptDetail"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    list_audit_log: {
        parameters: {
            query?: {
                /** @description Only this action. */
                action?: string;
                /** @description Only by this actor. */
                actor?: string;
                /** @description Only what was done to this resource, as entries name it: `survey/<id>`. */
                resource?: string;
                /** @description From here on: an ISO 8601 instant, or a day (UTC). */
                from?: string;
                /** @description Before: an ISO 8601 instant; or a day, which is included. */
                to?: string;
                /** @description How many items, 1 to 200; 50 unless given. */
                limit?: number;
                /** @description Where to go on: `nextCursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Page_EntryView"];
                    "text/csv": string;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    list_campaigns: {
        parameters: {
            query?: {
                /** @description Of this type; all unless given. */
                type?: "push" | "in_app";
            };
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Vec_AnyCampaignView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    create_campaign: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CampaignContent"];
            };
        };
        responses: {
            /** @description Created. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_AnyCampaignView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    get_campaign: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
                campaignId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_AnyCampaignView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    delete_campaign: {
        parameters: {
            query?: never;
            header?: {
                /** @description The versions of which the caller expects one, in quotes. */
                "If-Match"?: string;
            };
            path: {
                appId: string;
                campaignId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["PreconditionFailed"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    update_campaign: {
        parameters: {
            query?: never;
            header?: {
                /** @description The versions of which the caller expects one, in quotes. */
                "If-Match"?: string;
            };
            path: {
                appId: string;
                campaignId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PushCampaignPatch"] | components["schemas"]["InAppPatch"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_AnyCampaignView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    get_campaign_analytics: {
        parameters: {
            query?: {
                /** @description Made from here on: a day (UTC), or an ISO 8601 instant with an offset. */
                from?: string;
                /** @description Made before here: an instant; or a day, which is included. */
                to?: string;
            };
            header?: never;
            path: {
                appId: string;
                campaignId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_CampaignReport"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    list_campaign_recipients: {
        parameters: {
            query?: {
                /** @description Only those in this state. A page can be short, or empty, and go on: a request looks through 20,000. */
                state?: "issued" | "displayed" | "started" | "completed" | "dismissed" | "clicked" | "expired" | "suppressed";
                /** @description How many items, 1 to 200; 50 unless given. */
                limit?: number;
                /** @description Where to go on: `nextCursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path: {
                appId: string;
                campaignId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Page_RecipientView"];
                    "text/csv": string;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    test_send: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
                campaignId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TestSendRequest"];
            };
        };
        responses: {
            /** @description Queued. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_AnyTestView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    list_dead_letters: {
        parameters: {
            query?: {
                /** @description Events of this name. */
                eventName?: string;
                /** @description This reason. */
                reason?: string;
                /** @description This stage. */
                stage?: components["schemas"]["Stage"];
                /** @description Received at or after: an ISO 8601 instant, or a day (UTC). */
                from?: string;
                /** @description Received before: an ISO 8601 instant; or a day, which is included. */
                to?: string;
                /** @description How many items, 1 to 200; 50 unless given. */
                limit?: number;
                /** @description Where to go on. */
                cursor?: string;
            };
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Page_LetterView"];
                    "text/csv": string;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    acknowledge_dead_letters: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["BulkAcknowledgeRequest"];
            };
        };
        responses: {
            /** @description Queued. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_QueuedView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    replay_dead_letters: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["BulkReplayRequest"];
            };
        };
        responses: {
            /** @description Queued. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_QueuedView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    summarize_dead_letters: {
        parameters: {
            query?: {
                /** @description Events of this name. */
                eventName?: string;
                /** @description This reason. */
                reason?: string;
                /** @description This stage. */
                stage?: components["schemas"]["Stage"];
                /** @description Received at or after: an ISO 8601 instant, or a day (UTC). */
                from?: string;
                /** @description Received before: an ISO 8601 instant; or a day, which is included. */
                to?: string;
                /** @description How many items, 1 to 200; 50 unless given. */
                limit?: number;
                /** @description Where to go on. The pages that follow count what the first one has counted. */
                cursor?: string;
            };
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Page_GroupView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    get_dead_letter: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_LetterView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    acknowledge_dead_letter: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    replay_dead_letter: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ReplayRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_ReplayView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    list_decisions: {
        parameters: {
            query?: {
                /** @description Decisions about this campaign. */
                campaignId?: string;
                /** @description Decisions about this event, or a timer that it set. */
                eventId?: string;
                /** @description Decisions about this subject. */
                subjectId?: string;
                /** @description How many items at the most, 1 to 200; 50 unless given. A page may have fewer although more follow. */
                limit?: number;
                /** @description Where to go on. */
                cursor?: string;
            };
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Page_DecisionView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    rerun_decision: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_RerunView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    list_event_definitions: {
        parameters: {
            query?: {
                /** @description How many items, 1 to 200; 50 unless given. */
                limit?: number;
                /** @description Where to go on: `nextCursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Page_DefinitionView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    create_event_definition: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateRequest"];
            };
        };
        responses: {
            /** @description Created. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_DefinitionView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    infer_event_definition: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["InferRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_ProposalView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    get_event_definition: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_DefinitionView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    delete_event_definition: {
        parameters: {
            query?: never;
            header?: {
                /** @description The versions of which the caller expects one, in quotes. */
                "If-Match"?: string;
            };
            path: {
                appId: string;
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["PreconditionFailed"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    update_event_definition: {
        parameters: {
            query?: never;
            header?: {
                /** @description The versions of which the caller expects one, in quotes. */
                "If-Match"?: string;
            };
            path: {
                appId: string;
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DefinitionPatch"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_DefinitionView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    dry_run_event_definition: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DryRunRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_DryRunView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    list_events: {
        parameters: {
            query?: {
                /** @description Only events of this name. */
                name?: string;
                /** @description No events of this name. */
                excludeName?: string;
                /** @description Received at or after: an ISO 8601 instant, or a day (UTC). */
                from?: string;
                /** @description Received before: an ISO 8601 instant; or a day, which is included. */
                to?: string;
                /** @description Only those that were accepted, or only those that were rejected within the last hour. */
                verdict?: components["schemas"]["EventVerdict"];
                /** @description How many items, 1 to 500; 50 unless given. */
                limit?: number;
                /** @description Where to go on: `nextCursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Page_FeedEventView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    stream_events: {
        parameters: {
            query?: {
                /** @description Only events of this name. */
                name?: string;
                /** @description No events of this name. */
                excludeName?: string;
                /** @description Only those that are accepted, or only those that are rejected. */
                verdict?: components["schemas"]["EventVerdict"];
            };
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    explain: {
        parameters: {
            query: {
                /** @description The campaign, whatever its status. */
                campaignId: string;
                /** @description The subject. Exactly one of `subjectId`, `anonymousId` and `externalId` is given. */
                subjectId?: string;
                /** @description The subject, by an anonymous id. */
                anonymousId?: string;
                /** @description The subject, by the external id. */
                externalId?: string;
                /** @description The event. */
                eventId: string;
            };
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Explained"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    delete_person: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PersonRequest"];
            };
        };
        responses: {
            /** @description Queued. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_QueuedDeletionView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    get_deletion: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
                jobId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_DeletionView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    export_person: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PersonRequest"];
            };
        };
        responses: {
            /** @description Queued. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_QueuedExportView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    get_export: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
                exportId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_ExportView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    list_deletions: {
        parameters: {
            query?: {
                /** @description How many items, 1 to 200; 50 unless given. */
                limit?: number;
                /** @description Where to go on: `nextCursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Page_DeletionView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    list_identity_keys: {
        parameters: {
            query?: {
                /** @description How many items, 1 to 200; 50 unless given. */
                limit?: number;
                /** @description Where to go on: `nextCursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Page_IdentityKeyView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    create_identity_key: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateIdentityKeyRequest"];
            };
        };
        responses: {
            /** @description Created. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_IdentityKeyView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    delete_identity_key: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
                kid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    list_instructions: {
        parameters: {
            query: {
                /** @description The person. */
                subjectId: string;
                /** @description How many items, 1 to 200; 50 unless given. */
                limit?: number;
                /** @description Where to go on: `nextCursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Page_PersonInstructionView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    get_job: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_JobView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    list_keys: {
        parameters: {
            query?: {
                /** @description How many items, 1 to 200; 50 unless given. */
                limit?: number;
                /** @description Where to go on: `nextCursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Page_KeyView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    create_key: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateKeyRequest"];
            };
        };
        responses: {
            /** @description Created. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_NewKeyView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    revoke_key: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
                keyId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    preview_personalization: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PreviewRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_PreviewView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    list_plugin_slots: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Vec_SlotView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    set_plugin_slot: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
                kind: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SlotRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_SlotView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    clear_plugin_slot: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
                kind: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    list_plugins: {
        parameters: {
            query?: {
                /** @description How many items, 1 to 200; 50 unless given. */
                limit?: number;
                /** @description Where to go on: `nextCursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Page_PluginView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    upload_plugin: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/wasm": string;
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_VersionView"];
                };
            };
            /** @description Created. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_VersionView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    get_plugin: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_PluginDetailView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    delete_plugin: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    activate_plugin: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ActivateRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_ActivationView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    list_plugin_logs: {
        parameters: {
            query?: {
                /** @description Of this version. */
                version?: string;
                /** @description Of this level and those above it: `debug`, `info`, `warn` or `error`. */
                level?: string;
                /** @description At or after: an ISO 8601 instant, or a day (UTC). */
                since?: string;
                /** @description How many items, 1 to 200; 50 unless given. */
                limit?: number;
                /** @description Where to go on: `nextCursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path: {
                appId: string;
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Page_LogLineView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    get_plugin_metrics: {
        parameters: {
            query?: {
                /** @description From this minute on: an ISO 8601 instant, or a day (UTC); a day before `to` unless given. Counts are kept for 7 days. */
                from?: string;
                /** @description Until before: an ISO 8601 instant; or a day, which is included; now unless given. */
                to?: string;
            };
            header?: never;
            path: {
                appId: string;
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_MetricsView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    promote_plugin: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_ActivationView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    roll_back_plugin: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_ActivationView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    get_plugin_version: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
                name: string;
                version: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_VersionView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    delete_plugin_version: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
                name: string;
                version: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    backtest_plugin_version: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
                name: string;
                version: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["BacktestRequest"];
            };
        };
        responses: {
            /** @description Queued. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_BacktestView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    test_plugin_version: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
                name: string;
                version: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TestRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_TestView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    list_push_credentials: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Vec_CredentialView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    create_push_credential: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateCredentialRequest"];
            };
        };
        responses: {
            /** @description Created. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_CredentialView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    delete_push_credential: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
                credId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    list_deliveries: {
        parameters: {
            query?: {
                /** @description Of this campaign. */
                campaignId?: string;
                /** @description To this person. */
                subjectId?: string;
                /** @description In this status. */
                status?: "queued" | "sent" | "failed" | "bounced" | "delivered" | "displayed" | "dismissed" | "opened" | "clicked" | "skipped" | "cancelled";
                /** @description Made at or after: an ISO 8601 instant, or a day (UTC). */
                from?: string;
                /** @description Made before: an ISO 8601 instant; or a day, which is included. */
                to?: string;
                /** @description How many items, 1 to 200; 50 unless given. */
                limit?: number;
                /** @description Where to go on. */
                cursor?: string;
            };
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Page_DeliveryView"];
                    "text/csv": string;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    get_delivery: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
                deliveryId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_DeliveryView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    send_transactional: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SendRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_SendView"];
                };
            };
            /** @description Queued. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_SendView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    list_webhooks: {
        parameters: {
            query?: {
                /** @description How many items, 1 to 200; 50 unless given. */
                limit?: number;
                /** @description Where to go on: `nextCursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Page_WebhookView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    create_webhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WebhookRequest"];
            };
        };
        responses: {
            /** @description Created. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_WebhookView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    get_webhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
                webhookId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_WebhookView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    delete_webhook: {
        parameters: {
            query?: never;
            header?: {
                /** @description The versions of which the caller expects one, in quotes. */
                "If-Match"?: string;
            };
            path: {
                appId: string;
                webhookId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["PreconditionFailed"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    update_webhook: {
        parameters: {
            query?: never;
            header?: {
                /** @description The versions of which the caller expects one, in quotes. */
                "If-Match"?: string;
            };
            path: {
                appId: string;
                webhookId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WebhookPatch"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_WebhookView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    list_webhook_attempts: {
        parameters: {
            query?: {
                /** @description How many items, 1 to 200; 50 unless given. */
                limit?: number;
                /** @description Where to go on: `nextCursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path: {
                appId: string;
                webhookId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Page_WebhookAttemptView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    enable_webhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
                webhookId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_WebhookView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    retry_webhook_message: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
                webhookId: string;
                messageId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Queued. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_WebhookRetryView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    recover_webhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
                webhookId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RecoverRequest"];
            };
        };
        responses: {
            /** @description Queued. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_RecoverView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    rotate_webhook_secret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
                webhookId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["RotateRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_WebhookView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    test_webhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
                webhookId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_WebhookTestView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    list_segments: {
        parameters: {
            query?: {
                /** @description How many items, 1 to 200; 50 unless given. */
                limit?: number;
                /** @description Where to go on: `nextCursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Page_SegmentView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    create_segment: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SegmentContent"];
            };
        };
        responses: {
            /** @description Created. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_SegmentView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    preview_segment: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SegmentPreviewInput"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_SegmentPreviewView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    get_segment: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
                segmentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_SegmentView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    delete_segment: {
        parameters: {
            query?: never;
            header?: {
                /** @description The versions of which the caller expects one, in quotes. */
                "If-Match"?: string;
            };
            path: {
                appId: string;
                segmentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["PreconditionFailed"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    update_segment: {
        parameters: {
            query?: never;
            header?: {
                /** @description The versions of which the caller expects one, in quotes. */
                "If-Match"?: string;
            };
            path: {
                appId: string;
                segmentId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SegmentPatch"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_SegmentView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    list_segment_history: {
        parameters: {
            query?: {
                /** @description From here on: an ISO 8601 instant, or a day (UTC). Unless given, 90 days ago. */
                from?: string;
                /** @description Before: an ISO 8601 instant; or a day, which is included. */
                to?: string;
            };
            header?: never;
            path: {
                appId: string;
                segmentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Vec_SegmentSizeView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    list_segment_members: {
        parameters: {
            query?: {
                /** @description How many items, 1 to 200; 50 unless given. */
                limit?: number;
                /** @description Where to go on: `nextCursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path: {
                appId: string;
                segmentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_SegmentMembersView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    get_settings: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_SettingsView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    update_settings: {
        parameters: {
            query?: never;
            header?: {
                /** @description The versions of which the caller expects one, in quotes. */
                "If-Match"?: string;
            };
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SettingsPatch"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_SettingsView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    get_stats: {
        parameters: {
            query?: {
                /**
                 * @description From the interval that this ISO 8601 instant is in, or from this day (UTC) on; a day before `to` for hours, 30 for
                 *     days.
                 */
                from?: string;
                /** @description To the interval that this instant is in, or begins, or to the end of this day; now unless given. */
                to?: string;
                /** @description `hour` unless given, or `day`. */
                interval?: components["schemas"]["Interval"];
            };
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_AppStatsView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    list_surveys: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Vec_SurveyView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    create_survey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SurveyContent"];
            };
        };
        responses: {
            /** @description Created. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_SurveyView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    get_survey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
                surveyId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_SurveyView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    delete_survey: {
        parameters: {
            query?: never;
            header?: {
                /** @description The versions of which the caller expects one, in quotes. */
                "If-Match"?: string;
            };
            path: {
                appId: string;
                surveyId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["PreconditionFailed"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    update_survey: {
        parameters: {
            query?: never;
            header?: {
                /** @description The versions of which the caller expects one, in quotes. */
                "If-Match"?: string;
            };
            path: {
                appId: string;
                surveyId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SurveyPatch"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_SurveyView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    get_survey_analytics: {
        parameters: {
            query?: {
                /** @description Attempts that began from here on: a day (UTC), or an ISO 8601 instant with an offset. */
                from?: string;
                /** @description Attempts that began before here: an instant; or a day, which is included. */
                to?: string;
            };
            header?: never;
            path: {
                appId: string;
                surveyId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Report"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    list_survey_attempts: {
        parameters: {
            query?: {
                /** @description How many items, 1 to 200; 50 unless given. */
                limit?: number;
                /** @description Where to go on: `nextCursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path: {
                appId: string;
                surveyId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Page_AttemptDetail"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    get_survey_attempt: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
                surveyId: string;
                attemptId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_AttemptDetail"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    list_survey_recipients: {
        parameters: {
            query?: {
                /** @description Only those in this state. A page can be short, or empty, and go on: a request looks through 20,000. */
                state?: "issued" | "displayed" | "started" | "completed" | "dismissed" | "clicked" | "expired" | "suppressed";
                /** @description How many items, 1 to 200; 50 unless given. */
                limit?: number;
                /** @description Where to go on: `nextCursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path: {
                appId: string;
                surveyId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Page_RecipientView"];
                    "text/csv": string;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    list_survey_responses: {
        parameters: {
            query?: {
                /** @description Answers given from here on: an ISO 8601 instant with an offset, or a day (UTC). */
                from?: string;
                /** @description Answers given before here: an instant; or a day, which is included. */
                to?: string;
                /** @description Which page, from 1 on. */
                page?: number;
                /** @description How many items, 1 to 200; 50 unless given. */
                limit?: number;
            };
            header?: never;
            path: {
                appId: string;
                surveyId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_ResponsesView"];
                    "text/csv": string;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    list_users: {
        parameters: {
            query?: {
                /**
                 * @description What an anonymous id, external id or subject id begins with, or what is in the text of a property's value;
                 *     at most 256 characters. A page can be short, or empty, and go on: a request looks through 20,000 values.
                 */
                q?: string;
                /** @description How many items, 1 to 200; 50 unless given. */
                limit?: number;
                /** @description Where to go on: `nextCursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_UserPage"];
                    "text/csv": string;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    get_user_called_properties: {
        parameters: {
            query?: {
                /**
                 * @description What the id in the path is. Unless given: what begins with `externalId:` is an external id; anything else an
                 *     anonymous id or, if nobody has it, an external id.
                 */
                idKind?: components["schemas"]["IdKind"];
            };
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_UserDetail"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    update_user_properties: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["BackendUpdate"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_OutcomeView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    get_user: {
        parameters: {
            query?: {
                /**
                 * @description What the id in the path is. Unless given: what begins with `externalId:` is an external id; anything else an
                 *     anonymous id or, if nobody has it, an external id.
                 */
                idKind?: components["schemas"]["IdKind"];
            };
            header?: never;
            path: {
                appId: string;
                anonymousId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_UserDetail"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    list_user_events: {
        parameters: {
            query?: {
                /**
                 * @description What the id in the path is. Unless given: what begins with `externalId:` is an external id; anything else an
                 *     anonymous id or, if nobody has it, an external id.
                 */
                idKind?: components["schemas"]["IdKind"];
                /** @description Only events of this name. */
                name?: string;
                /** @description Happened at or after: an ISO 8601 instant, or a day (UTC). */
                from?: string;
                /** @description Happened before: an ISO 8601 instant; or a day, which is included. */
                to?: string;
                /** @description How many items, 1 to 500; 50 unless given. */
                limit?: number;
                /** @description Where to go on: `nextCursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path: {
                appId: string;
                anonymousId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_TimelineView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    get_plugin_state: {
        parameters: {
            query?: {
                /**
                 * @description What the id in the path is. Unless given: what begins with `externalId:` is an external id; anything else an
                 *     anonymous id or, if nobody has it, an external id.
                 */
                idKind?: components["schemas"]["IdKind"];
            };
            header?: never;
            path: {
                appId: string;
                anonymousId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_KeptView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    erase_plugin_state: {
        parameters: {
            query?: {
                /**
                 * @description What the id in the path is. Unless given: what begins with `externalId:` is an external id; anything else an
                 *     anonymous id or, if nobody has it, an external id.
                 */
                idKind?: components["schemas"]["IdKind"];
            };
            header?: never;
            path: {
                appId: string;
                anonymousId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    collect_batch: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CollectionRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CollectedView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    collect_beacon: {
        parameters: {
            query?: {
                /** @description A public write key. */
                writeKey?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CollectionRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CollectedView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    collect_messages: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                kind: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CollectionRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CollectedView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    list_errors: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Vec_CodeView"];
                };
            };
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    download_export: {
        parameters: {
            query: {
                /** @description The app. */
                app: string;
                /** @description Until when the URL is good, in microseconds since the epoch. */
                expires: number;
                /** @description The server's signature. */
                signature: string;
            };
            header?: never;
            path: {
                exportId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/zip": string;
                };
            };
            400: components["responses"]["BadRequest"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["UnprocessableEntity"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    list_server_audit_log: {
        parameters: {
            query?: {
                /** @description Only this action. */
                action?: string;
                /** @description Only by this actor. */
                actor?: string;
                /** @description Only what was done to this resource, as entries name it: `survey/<id>`. */
                resource?: string;
                /** @description From here on: an ISO 8601 instant, or a day (UTC). */
                from?: string;
                /** @description Before: an ISO 8601 instant; or a day, which is included. */
                to?: string;
                /** @description How many items, 1 to 200; 50 unless given. */
                limit?: number;
                /** @description Where to go on: `nextCursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Page_EntryView"];
                    "text/csv": string;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    list_server_plugin_slots: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Vec_SlotView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    set_server_plugin_slot: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                kind: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SlotRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_SlotView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    clear_server_plugin_slot: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                kind: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    list_server_plugins: {
        parameters: {
            query?: {
                /** @description How many items, 1 to 200; 50 unless given. */
                limit?: number;
                /** @description Where to go on: `nextCursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Page_PluginView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    upload_server_plugin: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/wasm": string;
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_VersionView"];
                };
            };
            /** @description Created. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_VersionView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    get_server_plugin: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_PluginDetailView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    delete_server_plugin: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    activate_server_plugin: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ActivateRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_ActivationView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    list_server_plugin_logs: {
        parameters: {
            query?: {
                /** @description Of this version. */
                version?: string;
                /** @description Of this level and those above it: `debug`, `info`, `warn` or `error`. */
                level?: string;
                /** @description At or after: an ISO 8601 instant, or a day (UTC). */
                since?: string;
                /** @description How many items, 1 to 200; 50 unless given. */
                limit?: number;
                /** @description Where to go on: `nextCursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Page_LogLineView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    get_server_plugin_metrics: {
        parameters: {
            query?: {
                /** @description From this minute on: an ISO 8601 instant, or a day (UTC); a day before `to` unless given. Counts are kept for 7 days. */
                from?: string;
                /** @description Until before: an ISO 8601 instant; or a day, which is included; now unless given. */
                to?: string;
            };
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_MetricsView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    promote_server_plugin: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_ActivationView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    roll_back_server_plugin: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_ActivationView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    get_server_plugin_version: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
                version: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_VersionView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    delete_server_plugin_version: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
                version: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    backtest_server_plugin_version: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
                version: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ServerBacktestRequest"];
            };
        };
        responses: {
            /** @description Queued. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_BacktestView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    test_server_plugin_version: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
                version: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TestRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_TestView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    answer_attempt: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                attemptId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AnswersRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_NextView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    complete_attempt: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                attemptId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["EndRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_AttemptView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    dismiss_attempt: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                attemptId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["EndRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_AttemptView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    ingest_beacon: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "text/plain": string;
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_IngestView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    update_consent: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ConsentRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_ConsentView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    ingest_events: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["IngestRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_IngestView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    poll_instructions: {
        parameters: {
            query?: {
                /** @description Where to go on: `nextCursor` of the answer before. */
                cursor?: string;
                /** @description How long to wait for an instruction, 0 to 25 seconds. */
                wait?: number;
                /** @description How many instructions, 1 to 20. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_PollView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    acknowledge_instructions: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AckRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_AckView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    register_push_token: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RegisterRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_RegisteredView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    remove_push_token: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                deviceId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    send_receipts: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ReceiptsRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_ReceiptsView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    start_session: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SessionRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_SessionView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    end_session: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["EndSessionRequest"];
            };
        };
        responses: {
            /** @description Done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    start_attempt: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                surveyId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["StartRequest"];
            };
        };
        responses: {
            /** @description Created. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_AttemptView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    update_own_properties: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SdkUpdate"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_OutcomeView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    webhook_bounced: {
        parameters: {
            query?: never;
            header: {
                /** @description The event's type. */
                "X-Service-Event": string;
                /** @description `t=<unix seconds>,v1=<signature>`: base64url of HMAC-SHA256 with the secret's 32 bytes over `<t>.<body>`. While a secret is rotated there are two `v1`. Refuse what is more than 5 minutes from now. */
                "X-Service-Signature": string;
                /** @description The message's id, the same on each retry. */
                "X-Service-Delivery": string;
                /** @description Which attempt it is, from 1. */
                "X-Service-Attempt": string;
                /** @description As of Standard Webhooks: the message's id. */
                "webhook-id": string;
                /** @description As of Standard Webhooks: seconds since 1970. */
                "webhook-timestamp": string;
                /** @description As of Standard Webhooks: `v1,<signature>`. */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WebhookMessage"] & {
                    data?: components["schemas"]["WebhookDeliveryData"];
                    /** @constant */
                    event?: "bounced";
                };
            };
        };
        responses: {
            /** @description It is taken. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description 408, 429, 5xx and no answer within 10 seconds: it is sent again, five times in all; `Retry-After` of a 429 is honoured. Any other status: it is not. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    webhook_clicked: {
        parameters: {
            query?: never;
            header: {
                /** @description The event's type. */
                "X-Service-Event": string;
                /** @description `t=<unix seconds>,v1=<signature>`: base64url of HMAC-SHA256 with the secret's 32 bytes over `<t>.<body>`. While a secret is rotated there are two `v1`. Refuse what is more than 5 minutes from now. */
                "X-Service-Signature": string;
                /** @description The message's id, the same on each retry. */
                "X-Service-Delivery": string;
                /** @description Which attempt it is, from 1. */
                "X-Service-Attempt": string;
                /** @description As of Standard Webhooks: the message's id. */
                "webhook-id": string;
                /** @description As of Standard Webhooks: seconds since 1970. */
                "webhook-timestamp": string;
                /** @description As of Standard Webhooks: `v1,<signature>`. */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WebhookMessage"] & {
                    data?: components["schemas"]["WebhookDeliveryData"];
                    /** @constant */
                    event?: "clicked";
                };
            };
        };
        responses: {
            /** @description It is taken. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description 408, 429, 5xx and no answer within 10 seconds: it is sent again, five times in all; `Retry-After` of a 429 is honoured. Any other status: it is not. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    webhook_dead_letter_created: {
        parameters: {
            query?: never;
            header: {
                /** @description The event's type. */
                "X-Service-Event": string;
                /** @description `t=<unix seconds>,v1=<signature>`: base64url of HMAC-SHA256 with the secret's 32 bytes over `<t>.<body>`. While a secret is rotated there are two `v1`. Refuse what is more than 5 minutes from now. */
                "X-Service-Signature": string;
                /** @description The message's id, the same on each retry. */
                "X-Service-Delivery": string;
                /** @description Which attempt it is, from 1. */
                "X-Service-Attempt": string;
                /** @description As of Standard Webhooks: the message's id. */
                "webhook-id": string;
                /** @description As of Standard Webhooks: seconds since 1970. */
                "webhook-timestamp": string;
                /** @description As of Standard Webhooks: `v1,<signature>`. */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WebhookMessage"] & {
                    data?: components["schemas"]["WebhookDeadLetterData"];
                    /** @constant */
                    event?: "dead_letter.created";
                };
            };
        };
        responses: {
            /** @description It is taken. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description 408, 429, 5xx and no answer within 10 seconds: it is sent again, five times in all; `Retry-After` of a 429 is honoured. Any other status: it is not. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    webhook_delivered: {
        parameters: {
            query?: never;
            header: {
                /** @description The event's type. */
                "X-Service-Event": string;
                /** @description `t=<unix seconds>,v1=<signature>`: base64url of HMAC-SHA256 with the secret's 32 bytes over `<t>.<body>`. While a secret is rotated there are two `v1`. Refuse what is more than 5 minutes from now. */
                "X-Service-Signature": string;
                /** @description The message's id, the same on each retry. */
                "X-Service-Delivery": string;
                /** @description Which attempt it is, from 1. */
                "X-Service-Attempt": string;
                /** @description As of Standard Webhooks: the message's id. */
                "webhook-id": string;
                /** @description As of Standard Webhooks: seconds since 1970. */
                "webhook-timestamp": string;
                /** @description As of Standard Webhooks: `v1,<signature>`. */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WebhookMessage"] & {
                    data?: components["schemas"]["WebhookDeliveryData"];
                    /** @constant */
                    event?: "delivered";
                };
            };
        };
        responses: {
            /** @description It is taken. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description 408, 429, 5xx and no answer within 10 seconds: it is sent again, five times in all; `Retry-After` of a 429 is honoured. Any other status: it is not. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    webhook_dismissed: {
        parameters: {
            query?: never;
            header: {
                /** @description The event's type. */
                "X-Service-Event": string;
                /** @description `t=<unix seconds>,v1=<signature>`: base64url of HMAC-SHA256 with the secret's 32 bytes over `<t>.<body>`. While a secret is rotated there are two `v1`. Refuse what is more than 5 minutes from now. */
                "X-Service-Signature": string;
                /** @description The message's id, the same on each retry. */
                "X-Service-Delivery": string;
                /** @description Which attempt it is, from 1. */
                "X-Service-Attempt": string;
                /** @description As of Standard Webhooks: the message's id. */
                "webhook-id": string;
                /** @description As of Standard Webhooks: seconds since 1970. */
                "webhook-timestamp": string;
                /** @description As of Standard Webhooks: `v1,<signature>`. */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WebhookMessage"] & {
                    data?: components["schemas"]["WebhookDeliveryData"];
                    /** @constant */
                    event?: "dismissed";
                };
            };
        };
        responses: {
            /** @description It is taken. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description 408, 429, 5xx and no answer within 10 seconds: it is sent again, five times in all; `Retry-After` of a 429 is honoured. Any other status: it is not. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    webhook_displayed: {
        parameters: {
            query?: never;
            header: {
                /** @description The event's type. */
                "X-Service-Event": string;
                /** @description `t=<unix seconds>,v1=<signature>`: base64url of HMAC-SHA256 with the secret's 32 bytes over `<t>.<body>`. While a secret is rotated there are two `v1`. Refuse what is more than 5 minutes from now. */
                "X-Service-Signature": string;
                /** @description The message's id, the same on each retry. */
                "X-Service-Delivery": string;
                /** @description Which attempt it is, from 1. */
                "X-Service-Attempt": string;
                /** @description As of Standard Webhooks: the message's id. */
                "webhook-id": string;
                /** @description As of Standard Webhooks: seconds since 1970. */
                "webhook-timestamp": string;
                /** @description As of Standard Webhooks: `v1,<signature>`. */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WebhookMessage"] & {
                    data?: components["schemas"]["WebhookDeliveryData"];
                    /** @constant */
                    event?: "displayed";
                };
            };
        };
        responses: {
            /** @description It is taken. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description 408, 429, 5xx and no answer within 10 seconds: it is sent again, five times in all; `Retry-After` of a 429 is honoured. Any other status: it is not. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    webhook_failed: {
        parameters: {
            query?: never;
            header: {
                /** @description The event's type. */
                "X-Service-Event": string;
                /** @description `t=<unix seconds>,v1=<signature>`: base64url of HMAC-SHA256 with the secret's 32 bytes over `<t>.<body>`. While a secret is rotated there are two `v1`. Refuse what is more than 5 minutes from now. */
                "X-Service-Signature": string;
                /** @description The message's id, the same on each retry. */
                "X-Service-Delivery": string;
                /** @description Which attempt it is, from 1. */
                "X-Service-Attempt": string;
                /** @description As of Standard Webhooks: the message's id. */
                "webhook-id": string;
                /** @description As of Standard Webhooks: seconds since 1970. */
                "webhook-timestamp": string;
                /** @description As of Standard Webhooks: `v1,<signature>`. */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WebhookMessage"] & {
                    data?: components["schemas"]["WebhookDeliveryData"];
                    /** @constant */
                    event?: "failed";
                };
            };
        };
        responses: {
            /** @description It is taken. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description 408, 429, 5xx and no answer within 10 seconds: it is sent again, five times in all; `Retry-After` of a 429 is honoured. Any other status: it is not. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    webhook_opened: {
        parameters: {
            query?: never;
            header: {
                /** @description The event's type. */
                "X-Service-Event": string;
                /** @description `t=<unix seconds>,v1=<signature>`: base64url of HMAC-SHA256 with the secret's 32 bytes over `<t>.<body>`. While a secret is rotated there are two `v1`. Refuse what is more than 5 minutes from now. */
                "X-Service-Signature": string;
                /** @description The message's id, the same on each retry. */
                "X-Service-Delivery": string;
                /** @description Which attempt it is, from 1. */
                "X-Service-Attempt": string;
                /** @description As of Standard Webhooks: the message's id. */
                "webhook-id": string;
                /** @description As of Standard Webhooks: seconds since 1970. */
                "webhook-timestamp": string;
                /** @description As of Standard Webhooks: `v1,<signature>`. */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WebhookMessage"] & {
                    data?: components["schemas"]["WebhookDeliveryData"];
                    /** @constant */
                    event?: "opened";
                };
            };
        };
        responses: {
            /** @description It is taken. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description 408, 429, 5xx and no answer within 10 seconds: it is sent again, five times in all; `Retry-After` of a 429 is honoured. Any other status: it is not. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    webhook_plugin_degraded: {
        parameters: {
            query?: never;
            header: {
                /** @description The event's type. */
                "X-Service-Event": string;
                /** @description `t=<unix seconds>,v1=<signature>`: base64url of HMAC-SHA256 with the secret's 32 bytes over `<t>.<body>`. While a secret is rotated there are two `v1`. Refuse what is more than 5 minutes from now. */
                "X-Service-Signature": string;
                /** @description The message's id, the same on each retry. */
                "X-Service-Delivery": string;
                /** @description Which attempt it is, from 1. */
                "X-Service-Attempt": string;
                /** @description As of Standard Webhooks: the message's id. */
                "webhook-id": string;
                /** @description As of Standard Webhooks: seconds since 1970. */
                "webhook-timestamp": string;
                /** @description As of Standard Webhooks: `v1,<signature>`. */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WebhookMessage"] & {
                    data?: components["schemas"]["WebhookPluginData"];
                    /** @constant */
                    event?: "plugin.degraded";
                };
            };
        };
        responses: {
            /** @description It is taken. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description 408, 429, 5xx and no answer within 10 seconds: it is sent again, five times in all; `Retry-After` of a 429 is honoured. Any other status: it is not. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    webhook_plugin_rolled_back: {
        parameters: {
            query?: never;
            header: {
                /** @description The event's type. */
                "X-Service-Event": string;
                /** @description `t=<unix seconds>,v1=<signature>`: base64url of HMAC-SHA256 with the secret's 32 bytes over `<t>.<body>`. While a secret is rotated there are two `v1`. Refuse what is more than 5 minutes from now. */
                "X-Service-Signature": string;
                /** @description The message's id, the same on each retry. */
                "X-Service-Delivery": string;
                /** @description Which attempt it is, from 1. */
                "X-Service-Attempt": string;
                /** @description As of Standard Webhooks: the message's id. */
                "webhook-id": string;
                /** @description As of Standard Webhooks: seconds since 1970. */
                "webhook-timestamp": string;
                /** @description As of Standard Webhooks: `v1,<signature>`. */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WebhookMessage"] & {
                    data?: components["schemas"]["WebhookPluginData"];
                    /** @constant */
                    event?: "plugin.rolled_back";
                };
            };
        };
        responses: {
            /** @description It is taken. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description 408, 429, 5xx and no answer within 10 seconds: it is sent again, five times in all; `Retry-After` of a 429 is honoured. Any other status: it is not. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    webhook_sent: {
        parameters: {
            query?: never;
            header: {
                /** @description The event's type. */
                "X-Service-Event": string;
                /** @description `t=<unix seconds>,v1=<signature>`: base64url of HMAC-SHA256 with the secret's 32 bytes over `<t>.<body>`. While a secret is rotated there are two `v1`. Refuse what is more than 5 minutes from now. */
                "X-Service-Signature": string;
                /** @description The message's id, the same on each retry. */
                "X-Service-Delivery": string;
                /** @description Which attempt it is, from 1. */
                "X-Service-Attempt": string;
                /** @description As of Standard Webhooks: the message's id. */
                "webhook-id": string;
                /** @description As of Standard Webhooks: seconds since 1970. */
                "webhook-timestamp": string;
                /** @description As of Standard Webhooks: `v1,<signature>`. */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WebhookMessage"] & {
                    data?: components["schemas"]["WebhookDeliveryData"];
                    /** @constant */
                    event?: "sent";
                };
            };
        };
        responses: {
            /** @description It is taken. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description 408, 429, 5xx and no answer within 10 seconds: it is sent again, five times in all; `Retry-After` of a 429 is honoured. Any other status: it is not. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
}
