/*
 * What plugins in C stand on: the bindings, which `nudge plugin build` makes of the contract in `wit/`, and a few
 * helpers for text, JSON and cells.
 *
 * There is no C library. `include/` declares the few functions of it that nudge.c has. Each call of a plugin has a
 * fresh instance: memory is taken and never given back.
 */
#ifndef NUDGE_H
#define NUDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

/* --- Text: UTF-8, with its length in bytes. --- */

typedef plugin_string_t text_t;

/* A text of a literal, which is not copied. */
text_t text(const char *literal);
bool text_is(text_t one, const char *literal);
/* The texts one after another. */
text_t text_join(const text_t *texts, size_t count);
/* A number with up to six digits after the point, of 15 altogether, and without zeros at its end. Whole numbers have
 * all of their digits; what is not finite is null. */
text_t text_of_number(double number);

/* --- JSON. --- */

typedef enum { JSON_NULL, JSON_BOOLEAN, JSON_NUMBER, JSON_TEXT, JSON_ARRAY, JSON_OBJECT } json_type_t;

typedef struct json {
    json_type_t type;
    bool boolean;
    /* Exact up to 15 digits. */
    double number;
    /* Of a text: the text. */
    text_t text;
    /* Of a member of an object: its key. */
    text_t key;
    /* Of an array or object: its first item or member. */
    const struct json *first;
    /* The item or member after this one. */
    const struct json *next;
} json_t;

/* Reads a value; NULL where the text is not JSON. */
const json_t *json_read(text_t text);
/* The member of an object; NULL where the value is no object, or has none of the key. */
const json_t *json_member(const json_t *object, const char *key);
/* Whether there is a value, and it is of the type. */
bool json_is(const json_t *value, json_type_t type);

/* --- Cells: the table that the host gives of the properties which a configuration reads. --- */

/* The number in a cell; false where it has none. */
bool cell_number(const types_cells_t *cells, size_t columns, size_t row, size_t column, double *number);
/* The text in a cell; false where it has none. */
bool cell_text(const types_cells_t *cells, size_t columns, size_t row, size_t column, text_t *text);

/* --- What plugins answer. --- */

/* Says what the plugin is. The schema is JSON text, and may be empty. */
void describe(types_description_t *description, const char *name, const char *version, const char *summary,
              const char *config_schema);
/* Appends a text to a list, such as `reads->event_names`. */
void add_text(plugin_list_string_t *list, text_t text);
/* Appends what is wrong with a configuration. */
void add_problem(exports_plugin_list_problem_t *problems, const char *code, const char *pointer, const char *message);
/* Writes a line to the plugin's log. */
void log_line(log_level_t level, text_t line);

#endif
