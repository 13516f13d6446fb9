/* Text, JSON and cells for plugins in C, and as much of the C library as the bindings take. */
#include "nudge.h"

/* --- The C library. --- */

/* Where the linker lets the heap begin. */
extern unsigned char __heap_base;

static const size_t PAGE = 65536;
/* What is before an allocation: its size. Allocations are aligned to as much. */
static const size_t HEAD = 16;

static uintptr_t heap_end;

void *malloc(size_t size) {
    if (heap_end == 0) heap_end = ((uintptr_t)&__heap_base + HEAD - 1) / HEAD * HEAD;
    uintptr_t memory = __builtin_wasm_memory_size(0) * PAGE;
    if (size > SIZE_MAX - 3 * HEAD - heap_end) abort();
    uintptr_t end = heap_end + HEAD + (size + HEAD - 1) / HEAD * HEAD;
    if (end > memory) {
        size_t pages = (end - memory + PAGE - 1) / PAGE;
        if (__builtin_wasm_memory_grow(0, pages) == SIZE_MAX) abort();
    }
    *(size_t *)heap_end = size;
    void *pointer = (void *)(heap_end + HEAD);
    heap_end = end;
    return pointer;
}

void *realloc(void *pointer, size_t size) {
    if (pointer == NULL) return malloc(size);
    size_t before = *(size_t *)((uintptr_t)pointer - HEAD);
    if (size <= before) return pointer;
    return memcpy(malloc(size), pointer, before);
}

/* The instance ends with the call, and its memory with it. */
void free(void *pointer) { (void)pointer; }

_Noreturn void abort(void) { __builtin_trap(); }

/* The compiler must not make calls of these functions out of their own loops: build with -fno-builtin. */
void *memcpy(void *restrict to, const void *restrict from, size_t size) { return memmove(to, from, size); }

void *memmove(void *to, const void *from, size_t size) {
    unsigned char *target = to;
    const unsigned char *source = from;
    if ((uintptr_t)target < (uintptr_t)source) {
        for (size_t at = 0; at < size; at++) target[at] = source[at];
    } else {
        for (size_t at = size; at > 0; at--) target[at - 1] = source[at - 1];
    }
    return to;
}

void *memset(void *to, int byte, size_t size) {
    unsigned char *target = to;
    for (size_t at = 0; at < size; at++) target[at] = (unsigned char)byte;
    return to;
}

int memcmp(const void *one, const void *other, size_t size) {
    const unsigned char *left = one, *right = other;
    for (size_t at = 0; at < size; at++) {
        if (left[at] != right[at]) return left[at] < right[at] ? -1 : 1;
    }
    return 0;
}

size_t strlen(const char *text) {
    size_t length = 0;
    while (text[length] != '\0') length++;
    return length;
}

/* --- Text. --- */

text_t text(const char *literal) { return (text_t){(uint8_t *)literal, strlen(literal)}; }

bool text_is(text_t one, const char *literal) {
    return one.len == strlen(literal) && memcmp(one.ptr, literal, one.len) == 0;
}

text_t text_join(const text_t *texts, size_t count) {
    size_t length = 0;
    for (size_t at = 0; at < count; at++) length += texts[at].len;
    text_t joined = {malloc(length), 0};
    for (size_t at = 0; at < count; at++) {
        memcpy(joined.ptr + joined.len, texts[at].ptr, texts[at].len);
        joined.len += texts[at].len;
    }
    return joined;
}

/* Writes the digits of a whole number before `at`; where they begin. */
static uint8_t *write_digits(uint8_t *at, uint64_t number) {
    do *--at = (uint8_t)('0' + number % 10);
    while ((number /= 10) > 0);
    return at;
}

/* Doubles digits that begin at `at` and end at `end`; where they begin then. */
static uint8_t *double_digits(uint8_t *at, const uint8_t *end) {
    int carried = 0;
    for (size_t place = (size_t)(end - at); place > 0; place--) {
        int doubled = 2 * (at[place - 1] - '0') + carried;
        at[place - 1] = (uint8_t)('0' + doubled % 10);
        carried = doubled / 10;
    }
    if (carried > 0) *--at = '1';
    return at;
}

/* Writes a number that is not negative before `end`; where it begins. */
static uint8_t *write_number(uint8_t *end, double number) {
    /* Up to here a double has digits after the point. */
    if (number >= 0x1p52) {
        int doublings = 0;
        for (; number >= 0x1p63; number /= 2) doublings++;
        uint8_t *at = write_digits(end, (uint64_t)number);
        while (doublings-- > 0) at = double_digits(at, end);
        return at;
    }
    uint64_t whole = (uint64_t)number, scale = 1, most = 1000000000000000;
    while (scale < 1000000 && whole * scale * 10 < most) scale *= 10;
    uint64_t rest = (uint64_t)((number - (double)whole) * (double)scale + 0.5);
    if (rest == scale) return write_digits(end, whole + 1);
    if (rest == 0) return write_digits(end, whole);
    for (; rest % 10 == 0; rest /= 10) scale /= 10;
    /* What stands before the rest keeps its zeros. */
    uint8_t *at = write_digits(end, scale + rest);
    *at = '.';
    return write_digits(at, whole);
}

text_t text_of_number(double number) {
    /* The largest has 309 digits. */
    uint8_t digits[320], *end = digits + sizeof digits;
    if (!(number - number == 0)) return text("null");
    uint8_t *at = write_number(end, number < 0 ? -number : number);
    bool is_zero = end - at == 1 && *at == '0';
    if (number < 0 && !is_zero) *--at = '-';
    return text_join(&(text_t){at, (size_t)(end - at)}, 1);
}

/* --- JSON. --- */

typedef struct {
    const uint8_t *at, *end;
    int depth;
} reader_t;

static const int DEEPEST = 64;

static json_t *read_value(reader_t *reader);

static void skip_space(reader_t *reader) {
    while (reader->at < reader->end && (*reader->at == ' ' || *reader->at == '\t' || *reader->at == '\n' || *reader->at == '\r')) {
        reader->at++;
    }
}

/* Takes a character, if it is the next one after white space. */
static bool take(reader_t *reader, uint8_t wanted) {
    skip_space(reader);
    if (reader->at == reader->end || *reader->at != wanted) return false;
    reader->at++;
    return true;
}

static bool take_word(reader_t *reader, const char *word) {
    size_t length = strlen(word);
    if ((size_t)(reader->end - reader->at) < length || memcmp(reader->at, word, length) != 0) return false;
    reader->at += length;
    return true;
}

static bool read_hex(reader_t *reader, uint32_t *code) {
    *code = 0;
    for (int digit = 0; digit < 4; digit++) {
        if (reader->at == reader->end) return false;
        uint8_t letter = *reader->at++;
        uint8_t lower = letter | 0x20;
        if (letter >= '0' && letter <= '9') *code = *code * 16 + letter - '0';
        else if (lower >= 'a' && lower <= 'f') *code = *code * 16 + lower - 'a' + 10;
        else return false;
    }
    return true;
}

static void push_code(text_t *text, uint32_t code) {
    if (code < 0x80) {
        text->ptr[text->len++] = (uint8_t)code;
        return;
    }
    int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const uint8_t HEADS[] = {0, 0xc0, 0xe0, 0xf0};
    text->ptr[text->len++] = (uint8_t)(HEADS[more] | code >> (6 * more));
    while (more-- > 0) text->ptr[text->len++] = (uint8_t)(0x80 | (code >> (6 * more) & 0x3f));
}

static bool read_escape(reader_t *reader, text_t *text) {
    if (reader->at == reader->end) return false;
    uint8_t letter = *reader->at++;
    switch (letter) {
        case '"': case '\\': case '/': push_code(text, letter); return true;
        case 'b': push_code(text, '\b'); return true;
        case 'f': push_code(text, '\f'); return true;
        case 'n': push_code(text, '\n'); return true;
        case 'r': push_code(text, '\r'); return true;
        case 't': push_code(text, '\t'); return true;
        case 'u': break;
        default: return false;
    }
    uint32_t code, low;
    if (!read_hex(reader, &code)) return false;
    if (code >= 0xd800 && code < 0xdc00) {
        if (!take_word(reader, "\\u") || !read_hex(reader, &low) || low < 0xdc00 || low > 0xdfff) return false;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xdc00 && code < 0xe000) {
        return false;
    }
    push_code(text, code);
    return true;
}

/* How many bytes there are up to the closing quote, or the end. */
static size_t text_length(const reader_t *reader) {
    const uint8_t *at = reader->at;
    while (at < reader->end && *at != '"') at += *at == '\\' && reader->end - at > 1 ? 2 : 1;
    return (size_t)(at - reader->at);
}

static bool read_text(reader_t *reader, text_t *text) {
    if (!take(reader, '"')) return false;
    /* An escape is never shorter than what it stands for. */
    *text = (text_t){malloc(text_length(reader)), 0};
    while (reader->at < reader->end) {
        uint8_t byte = *reader->at++;
        if (byte == '"') return true;
        if (byte < 0x20) return false;
        if (byte == '\\') {
            if (!read_escape(reader, text)) return false;
        } else {
            text->ptr[text->len++] = byte;
        }
    }
    return false;
}

static bool is_digit(const reader_t *reader) {
    return reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9';
}

static bool read_number(reader_t *reader, double *number) {
    bool is_negative = take_word(reader, "-");
    double digits = 0;
    int exponent = 0;
    if (!is_digit(reader)) return false;
    bool begins_with_zero = *reader->at == '0';
    const uint8_t *first = reader->at;
    for (; is_digit(reader); reader->at++) digits = digits * 10 + (*reader->at - '0');
    if (begins_with_zero && reader->at - first > 1) return false;
    if (take_word(reader, ".")) {
        if (!is_digit(reader)) return false;
        for (; is_digit(reader); reader->at++, exponent--) digits = digits * 10 + (*reader->at - '0');
    }
    if (take_word(reader, "e") || take_word(reader, "E")) {
        bool is_small = take_word(reader, "-");
        if (!is_small) take_word(reader, "+");
        if (!is_digit(reader)) return false;
        int given = 0;
        for (; is_digit(reader); reader->at++) {
            if (given < 10000) given = given * 10 + (*reader->at - '0');
        }
        exponent += is_small ? -given : given;
    }
    /* Powers of ten up to 22 are exact. */
    double power = 1;
    for (int left = exponent < 0 ? -exponent : exponent; left > 0 && power < 1e300; left--) power *= 10;
    double value = exponent < 0 ? digits / power : digits * power;
    *number = is_negative ? -value : value;
    return true;
}

/* Items of an array, or members of an object, up to the closing character. */
static bool read_parts(reader_t *reader, json_t *whole, uint8_t close) {
    const json_t **link = &whole->first;
    if (take(reader, close)) return true;
    do {
        text_t key = {0};
        if (whole->type == JSON_OBJECT && !(read_text(reader, &key) && take(reader, ':'))) return false;
        json_t *part = read_value(reader);
        if (part == NULL) return false;
        part->key = key;
        *link = part;
        link = &part->next;
    } while (take(reader, ','));
    return take(reader, close);
}

static json_t *read_value(reader_t *reader) {
    json_t *value = memset(malloc(sizeof *value), 0, sizeof *value);
    bool is_good;
    if (reader->depth++ == DEEPEST) return NULL;
    skip_space(reader);
    if (reader->at == reader->end) return NULL;
    if (take(reader, '{')) {
        value->type = JSON_OBJECT;
        is_good = read_parts(reader, value, '}');
    } else if (take(reader, '[')) {
        value->type = JSON_ARRAY;
        is_good = read_parts(reader, value, ']');
    } else if (*reader->at == '"') {
        value->type = JSON_TEXT;
        is_good = read_text(reader, &value->text);
    } else if (take_word(reader, "true")) {
        value->type = JSON_BOOLEAN;
        is_good = value->boolean = true;
    } else if (take_word(reader, "false")) {
        value->type = JSON_BOOLEAN;
        is_good = true;
    } else if (take_word(reader, "null")) {
        is_good = true;
    } else {
        value->type = JSON_NUMBER;
        is_good = read_number(reader, &value->number);
    }
    reader->depth--;
    return is_good ? value : NULL;
}

const json_t *json_read(text_t text) {
    reader_t reader = {text.ptr, text.ptr + text.len, 0};
    const json_t *value = read_value(&reader);
    skip_space(&reader);
    return reader.at == reader.end ? value : NULL;
}

const json_t *json_member(const json_t *object, const char *key) {
    if (!json_is(object, JSON_OBJECT)) return NULL;
    const json_t *found = NULL;
    for (const json_t *member = object->first; member != NULL; member = member->next) {
        if (text_is(member->key, key)) found = member;
    }
    return found;
}

bool json_is(const json_t *value, json_type_t type) { return value != NULL && value->type == type; }

/* --- Cells. --- */

/* The tags of cells, as the contract has them. */
enum { TAG_NUMBER = 4, TAG_TEXT = 5 };

bool cell_number(const types_cells_t *cells, size_t columns, size_t row, size_t column, double *number) {
    size_t cell = row * columns + column;
    if (cell >= cells->tags.len || cells->tags.ptr[cell] != TAG_NUMBER) return false;
    *number = cells->numbers.ptr[cell];
    return true;
}

bool cell_text(const types_cells_t *cells, size_t columns, size_t row, size_t column, text_t *text) {
    size_t cell = row * columns + column;
    if (cell >= cells->tags.len || cells->tags.ptr[cell] != TAG_TEXT) return false;
    size_t start = cell == 0 ? 0 : cells->ends.ptr[cell - 1];
    *text = (text_t){cells->text.ptr + start, cells->ends.ptr[cell] - start};
    return true;
}

/* --- What plugins answer. --- */

void describe(types_description_t *description, const char *name, const char *version, const char *summary,
              const char *config_schema) {
    *description = (types_description_t){
        .name = text(name), .version = text(version), .summary = text(summary), .config_schema = text(config_schema)};
}

void add_text(plugin_list_string_t *list, text_t text) {
    list->ptr = realloc(list->ptr, (list->len + 1) * sizeof *list->ptr);
    list->ptr[list->len++] = text;
}

void add_problem(exports_plugin_list_problem_t *problems, const char *code, const char *pointer, const char *message) {
    problems->ptr = realloc(problems->ptr, (problems->len + 1) * sizeof *problems->ptr);
    problems->ptr[problems->len++] =
        (exports_plugin_problem_t){.code = text(code), .pointer = text(pointer), .message = text(message)};
}

void log_line(log_level_t level, text_t line) { log_write(level, &line); }
