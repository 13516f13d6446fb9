// Checks what concerns two properties at once: a discount is never more than the total.
#include "nudge.h"

static const char SCHEMA[] =
    "{\"type\": \"object\", \"required\": [\"smaller\", \"larger\"], \"properties\": {"
    "\"smaller\": {\"type\": \"string\", \"minLength\": 1}, \"larger\": {\"type\": \"string\", \"minLength\": 1}}}";

void exports_plugin_describe(exports_plugin_description_t *description) {
    describe(description, "{{name}}", "0.1.0", "Checks that one number of an event is not more than another", SCHEMA);
}

// Two properties, as dotted paths.
typedef struct {
    text_t smaller, larger;
} config_t;

static text_t read_path(const json_t *config, const char *key, const char *pointer,
                        exports_plugin_list_problem_t *problems) {
    const json_t *path = json_member(config, key);
    if (json_is(path, JSON_TEXT) && path->text.len > 0) return path->text;
    add_problem(problems, "required", pointer, "must be a property, such as cart.total");
    return text("");
}

// Reads a configuration, and says what is wrong with it.
static config_t read_config(text_t json, exports_plugin_list_problem_t *problems) {
    const json_t *config = json_read(json);
    text_t smaller = read_path(config, "smaller", "/smaller", problems);
    return (config_t){smaller, read_path(config, "larger", "/larger", problems)};
}

// What is wrong with a configuration, and what decisions under it read.
bool exports_plugin_check_config(plugin_string_t *config, exports_plugin_reads_t *reads,
                                 exports_plugin_list_problem_t *problems) {
    *reads = (exports_plugin_reads_t){0};
    *problems = (exports_plugin_list_problem_t){0};
    config_t paths = read_config(*config, problems);
    add_text(&reads->properties, paths.smaller);
    add_text(&reads->properties, paths.larger);
    return problems->len == 0;
}

static void check(host_borrow_batch_t batch, uint32_t definition) {
    exports_plugin_list_problem_t problems = {0};
    plugin_string_t json;
    host_method_batch_definition_config(batch, definition, &json);
    config_t config = read_config(json, &problems);

    plugin_list_u32_t items;
    host_cells_t cells;
    host_method_batch_definition_items(batch, definition, &items);
    host_method_batch_definition_cells(batch, definition, &cells);
    host_violation_t *found = malloc(items.len * sizeof *found);
    size_t count = 0;
    for (size_t row = 0; row < items.len; row++) {
        double less, more;
        if (!cell_number(&cells, 2, row, 0, &less) || !cell_number(&cells, 2, row, 1, &more) || less <= more) continue;
        text_t expected[] = {text("at most "), config.larger, text(", "), text_of_number(more)};
        found[count++] = (host_violation_t){.item = items.ptr[row],
                                            .code = text("out_of_range"),
                                            .property = config.smaller,
                                            .expected = text_join(expected, 4),
                                            .actual = text_of_number(less)};
    }
    host_method_batch_report(batch, &(host_list_violation_t){found, count});
}

// Every violation in the batch; an event without one is valid.
bool exports_plugin_validate(exports_plugin_borrow_batch_t batch, exports_plugin_refusal_t *refusal) {
    (void)refusal;
    uint32_t definitions = host_method_batch_definition_count(batch);
    for (uint32_t definition = 0; definition < definitions; definition++) check(batch, definition);
    return true;
}
