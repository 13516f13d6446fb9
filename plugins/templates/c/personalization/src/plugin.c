// Greets by name: a binding becomes "Hello Ada", or its fallback where the name is not known.
#include "nudge.h"

void exports_plugin_describe(exports_plugin_description_t *description) {
    describe(description, "{{name}}", "0.1.0", "Resolves each binding to a greeting with the recipient's name", "");
}

// The first binding of a configuration, if all of them are good.
static const json_t *read_bindings(text_t json, exports_plugin_list_problem_t *problems) {
    const json_t *bindings = json_member(json_read(json), "bindings");
    bool is_good = json_is(bindings, JSON_ARRAY);
    for (const json_t *binding = is_good ? bindings->first : NULL; binding != NULL; binding = binding->next) {
        is_good = is_good && json_is(json_member(binding, "id"), JSON_TEXT);
    }
    if (is_good) return bindings->first;
    add_problem(problems, "required", "/bindings", "must be a list of bindings, each with an `id`");
    return NULL;
}

// What is wrong with a configuration, and what decisions under it read.
bool exports_plugin_check_config(plugin_string_t *config, exports_plugin_reads_t *reads,
                                 exports_plugin_list_problem_t *problems) {
    *reads = (exports_plugin_reads_t){0};
    *problems = (exports_plugin_list_problem_t){0};
    read_bindings(*config, problems);
    add_text(&reads->subject_properties, text("name"));
    return problems->len == 0;
}

static host_resolution_t value_of(text_t value) {
    return (host_resolution_t){
        .value = {.is_some = true, .val = {.tag = TYPES_VALUE_TEXT, .val = {.text = value}}}, .text = value};
}

// What a binding stands for. One that is not resolved is missing.
static host_resolution_t resolve(const json_t *binding, bool has_name, text_t name) {
    if (has_name) return value_of(text_join((text_t[]){text("Hello "), name}, 2));
    const json_t *fallback = json_member(binding, "fallback");
    host_resolution_t resolution = {.detail = text("the recipient has no `name`")};
    if (json_is(fallback, JSON_TEXT)) {
        resolution = value_of(fallback->text);
        resolution.used_fallback = true;
    }
    resolution.issue = text("missing");
    return resolution;
}

static void greet(host_borrow_batch_t batch, uint32_t message) {
    exports_plugin_list_problem_t problems = {0};
    plugin_string_t json;
    host_method_batch_message_config(batch, message, &json);
    const json_t *bindings = read_bindings(json, &problems);

    plugin_list_u32_t items;
    host_cells_t cells;
    host_method_batch_message_items(batch, message, &items);
    host_method_batch_subject_cells(batch, message, &cells);
    size_t width = 0;
    for (const json_t *binding = bindings; binding != NULL; binding = binding->next) width++;
    host_resolution_t *resolutions = malloc(items.len * width * sizeof *resolutions);
    size_t count = 0;
    for (size_t row = 0; row < items.len; row++) {
        text_t name = {0};
        bool has_name = cell_text(&cells, 1, row, 0, &name);
        for (const json_t *binding = bindings; binding != NULL; binding = binding->next) {
            host_resolution_t resolution = resolve(binding, has_name, name);
            resolution.item = items.ptr[row];
            resolution.binding = json_member(binding, "id")->text;
            resolutions[count++] = resolution;
        }
    }
    host_method_batch_resolve(batch, &(host_list_resolution_t){resolutions, count});
}

// Every binding for every recipient.
bool exports_plugin_resolve(exports_plugin_borrow_batch_t batch, exports_plugin_refusal_t *refusal) {
    (void)refusal;
    uint32_t messages = host_method_batch_message_count(batch);
    for (uint32_t message = 0; message < messages; message++) greet(batch, message);
    return true;
}
