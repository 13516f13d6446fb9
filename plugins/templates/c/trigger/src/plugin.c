// Fires for a purchase of some size, and then not again for some time.
#include "nudge.h"

// Instants are microseconds.
#define MINUTE 60000000LL

static const char SCHEMA[] =
    "{\"type\": \"object\", \"required\": [\"minimum\"], \"properties\": {"
    "\"minimum\": {\"type\": \"number\"}, \"quietMinutes\": {\"type\": \"number\", \"minimum\": 1, \"maximum\": 10080}}}";

void exports_plugin_describe(exports_plugin_description_t *description) {
    describe(description, "{{name}}", "0.1.0", "Fires for a purchase of at least `minimum`, at most once in `quietMinutes`",
             SCHEMA);
}

// What a campaign says of its trigger.
typedef struct {
    // The smallest total that counts.
    double minimum;
    // How long a subject is left alone.
    double quiet_minutes;
} config_t;

// Reads a configuration, and says what is wrong with it.
static config_t read_config(text_t json, exports_plugin_list_problem_t *problems) {
    config_t config = {0, 60};
    const json_t *whole = json_read(json);
    const json_t *minimum = json_member(whole, "minimum");
    const json_t *quiet = json_member(whole, "quietMinutes");
    if (json_is(minimum, JSON_NUMBER)) {
        config.minimum = minimum->number;
    } else {
        add_problem(problems, "required", "/minimum", "must be a number, the smallest total that counts");
    }
    if (json_is(quiet, JSON_NUMBER)) config.quiet_minutes = quiet->number;
    bool is_other = quiet != NULL && quiet->type != JSON_NUMBER;
    if (is_other || !(config.quiet_minutes >= 1 && config.quiet_minutes <= 10080)) {
        add_problem(problems, "out_of_range", "/quietMinutes", "must be from 1 to 10080, a week");
    }
    return config;
}

// What is wrong with a configuration, and what decisions under it read.
bool exports_plugin_check_config(plugin_string_t *config, exports_plugin_reads_t *reads,
                                 exports_plugin_list_problem_t *problems) {
    *reads = (exports_plugin_reads_t){0};
    *problems = (exports_plugin_list_problem_t){0};
    read_config(*config, problems);
    add_text(&reads->event_names, text("purchase_completed"));
    add_text(&reads->properties, text("total"));
    return problems->len == 0;
}

// Whether the subject was fired for less than the quiet time ago. What must last is the subject's state.
static bool is_left_alone(host_borrow_batch_t batch, uint32_t campaign, uint32_t item, int64_t now, double quiet_minutes) {
    plugin_list_u8_t state;
    int64_t fired_at;
    if (!host_method_batch_get_state(batch, campaign, item, &state) || state.len != sizeof fired_at) return false;
    memcpy(&fired_at, state.ptr, sizeof fired_at);
    return now < fired_at + (int64_t)(quiet_minutes * MINUTE);
}

static void decide(host_borrow_batch_t batch, uint32_t campaign) {
    exports_plugin_list_problem_t problems = {0};
    plugin_string_t json;
    host_method_batch_campaign_config(batch, campaign, &json);
    config_t config = read_config(json, &problems);

    plugin_list_u32_t items, fired;
    host_cells_t cells;
    host_list_instant_t received;
    host_method_batch_campaign_items(batch, campaign, &items);
    host_method_batch_campaign_cells(batch, campaign, &cells);
    host_method_batch_received(batch, &received);
    fired = (plugin_list_u32_t){malloc(items.len * sizeof *fired.ptr), 0};
    for (size_t row = 0; row < items.len; row++) {
        uint32_t item = items.ptr[row];
        int64_t now = received.ptr[item];
        double total;
        if (!cell_number(&cells, 1, row, 0, &total) || total < config.minimum) continue;
        if (is_left_alone(batch, campaign, item, now, config.quiet_minutes)) continue;
        host_method_batch_set_state(batch, campaign, item, &(plugin_list_u8_t){(uint8_t *)&now, sizeof now});
        fired.ptr[fired.len++] = item;
    }
    host_method_batch_fire(batch, campaign, &fired);
}

// Which items fire which campaigns. Nothing stays in memory.
bool exports_plugin_evaluate(exports_plugin_borrow_batch_t batch, exports_plugin_refusal_t *refusal) {
    (void)refusal;
    uint32_t campaigns = host_method_batch_campaign_count(batch);
    for (uint32_t campaign = 0; campaign < campaigns; campaign++) decide(batch, campaign);
    return true;
}
