#include "config/config.h"

#include <stdlib.h>

#include "config/base/quantity.h"
#include "config/config_internal.h"
#include "config/yaml_node.h"

enum { CONFIG_ARENA_BYTES_MAX = 16 * 1024 * 1024 };

struct reader {
    struct arena *arena;
    struct error *err;
};

static int read_section(const struct reader *reader, const struct option *options,
                        const struct yaml_node *node, void *out);

/* Fails if the value is a list or a mapping. */
static int want_scalar(const struct reader *reader, const struct yaml_node *node, const char *what)
{
    if (node->type == YAML_SCALAR)
        return 0;
    return yaml_fail(reader->err, node, "%.*s: expected %s", SLICE_ARG(node->key), what);
}

/* YAML 1.1 reads these plain scalars as a boolean or as null: the author may not mean a string. */
static bool is_ambiguous(const struct yaml_node *node)
{
    static const char *const words[] = {"true", "false", "yes", "no", "on", "off", "null", "~"};

    if (node->is_quoted)
        return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (slice_equal_fold(node->text, slice_of(words[i])))
            return true;
    return false;
}

static int read_string(const struct reader *reader, const struct yaml_node *node, struct slice *out)
{
    if (want_scalar(reader, node, "a string") < 0)
        return reader->err->code;
    if (is_ambiguous(node) || node->text.len == 0)
        return yaml_fail(reader->err, node,
                         "%.*s: expected a string, not %s (put quotes around it)",
                         SLICE_ARG(node->key), node->text.len == 0 ? "nothing" : node->text.ptr);
    *out = node->text;
    return 0;
}

static int read_boolean(const struct reader *reader, const struct yaml_node *node, bool *out)
{
    bool is_true = slice_equal(node->text, SLICE("true"));

    if (node->type != YAML_SCALAR || node->is_quoted ||
        (!is_true && !slice_equal(node->text, SLICE("false"))))
        return yaml_fail(reader->err, node, "%.*s: expected true or false", SLICE_ARG(node->key));
    *out = is_true;
    return 0;
}

static int read_quantity(const struct reader *reader, const struct option *option,
                         const struct yaml_node *node, int64_t *out)
{
    char least[QUANTITY_TEXT_BYTES], most[QUANTITY_TEXT_BYTES];
    bool is_bytes = option->type == OPTION_BYTES;
    bool (*parse)(int64_t *, struct slice) = is_bytes ? quantity_bytes : quantity_duration_ms;
    const char *(*print)(int64_t, char *) = is_bytes ? quantity_bytes_text : quantity_duration_text;

    if (node->type != YAML_SCALAR || !parse(out, node->text))
        return yaml_fail(reader->err, node, "%s: expected a %s", option->key,
                         is_bytes ? "number of bytes, such as 64Mi" : "duration, such as 30s");
    if (*out < option->least || *out > option->most)
        return yaml_fail(reader->err, node, "%s: expected %s to %s", option->key,
                         print(option->least, least), print(option->most, most));
    return 0;
}

/* "A, B or C". */
static struct slice list_words(const struct reader *reader, const char *const *words)
{
    struct slice list = {"", 0};

    for (size_t i = 0; words[i] != NULL; i++)
        list = arena_printf(reader->arena, "%.*s%s%s", SLICE_ARG(list),
                            i == 0                 ? ""
                            : words[i + 1] == NULL ? " or "
                                                   : ", ",
                            words[i]);
    return list;
}

static int read_word(const struct reader *reader, const struct option *option,
                     const struct yaml_node *node, int *out)
{
    for (int i = 0; node->type == YAML_SCALAR && option->words[i] != NULL; i++) {
        if (slice_equal(node->text, slice_of(option->words[i]))) {
            *out = i;
            return 0;
        }
    }
    return yaml_fail(reader->err, node, "%s: expected %.*s", option->key,
                     SLICE_ARG(list_words(reader, option->words)));
}

static int want_sequence(const struct reader *reader, const struct option *option,
                         const struct yaml_node *node)
{
    if (node->type == YAML_SEQUENCE)
        return 0;
    return yaml_fail(reader->err, node, "%s: expected a list", option->key);
}

static int read_words(const struct reader *reader, const struct option *option,
                      const struct yaml_node *node, unsigned *out)
{
    if (want_sequence(reader, option, node) < 0)
        return reader->err->code;
    for (const struct yaml_node *item = node->first; item != NULL; item = item->next) {
        int word = 0;
        if (read_word(reader, option, item, &word) < 0)
            return reader->err->code;
        *out |= 1U << word;
    }
    return 0;
}

/* The list with room for the item, of `size` bytes, behind count others; NULL: an error. */
static void *grow_list(const struct reader *reader, const struct option *option,
                       const struct yaml_node *item, void *list, size_t count, size_t size)
{
    if (count >= (size_t)option->most) {
        (void)yaml_fail(reader->err, item, "%s: more than %lld", option->key,
                        (long long)option->most);
        return NULL;
    }
    void *grown = arena_grow(reader->arena, list, count, size);
    if (grown == NULL)
        (void)error_no_memory(reader->err);
    return grown;
}

static int read_strings(const struct reader *reader, const struct option *option,
                        const struct yaml_node *node, struct slice **out)
{
    size_t *count = (size_t *)(void *)(out + 1);

    if (want_sequence(reader, option, node) < 0)
        return reader->err->code;
    for (const struct yaml_node *item = node->first; item != NULL; item = item->next) {
        *out = grow_list(reader, option, item, *out, *count, sizeof **out);
        if (*out == NULL || read_string(reader, item, &(*out)[*count]) < 0)
            return reader->err->code;
        ++*count;
    }
    return 0;
}

/* Whether a key of a ConfigMap can end with it. */
static bool is_map_key(struct slice text)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";

    for (size_t i = 0; i < text.len; i++)
        if (memchr(allowed, text.ptr[i], sizeof allowed - 1) == NULL)
            return false;
    return text.len <= EXCLUSIVE_CLASS_LEN_MAX;
}

/* Checks the keys of an entry against each other. */
static int check_entry(const struct reader *reader, const struct yaml_node *node,
                       const struct defer_entry *entry)
{
    if ((entry->storage_class.len != 0) == (entry->csi_driver.len != 0))
        return yaml_fail(reader->err, node,
                         "an entry needs storageClass or csiDriver, but not both");
    if (entry->runtime_class.len == 0)
        return yaml_fail(reader->err, node, "an entry needs runtimeClass");
    if (entry->supports_fs_group != (entry->fs_group_change_policies != 0))
        return yaml_fail(reader->err, node,
                         "set both fsGroup: true and fsGroupChangePolicies, or neither");
    if (entry->non_exclusive_claims == NON_EXCLUSIVE_EXCLUSIVE && !is_map_key(entry->storage_class))
        return yaml_fail(reader->err, node,
                         "storageClass: with nonExclusiveClaims: Exclusive, expected at most %d of "
                         "the characters a-z, A-Z, 0-9, '.', '-' and '_'",
                         EXCLUSIVE_CLASS_LEN_MAX);
    return 0;
}

/* Whether one volume can match both entries. An entry without fsTypes matches any type. */
static bool fs_types_overlap(const struct defer_entry *a, const struct defer_entry *b)
{
    for (size_t i = 0; i < a->fs_type_count; i++)
        if (slice_is_among(a->fs_types[i], b->fs_types, b->fs_type_count))
            return true;
    return a->fs_type_count == 0 || b->fs_type_count == 0;
}

/* Fails if an earlier entry matches the same volumes, since the first entry would silently win. */
static int check_overlap(const struct reader *reader, const struct yaml_node *node,
                         const struct defer_entry *entries, size_t index)
{
    const struct defer_entry *entry = &entries[index];

    for (size_t i = 0; i < index; i++)
        if (slice_equal(entries[i].runtime_class, entry->runtime_class) &&
            slice_equal(entries[i].storage_class, entry->storage_class) &&
            slice_equal(entries[i].csi_driver, entry->csi_driver) &&
            fs_types_overlap(&entries[i], entry))
            return yaml_fail(reader->err, node,
                             "the entry overlaps with entry %zu, which is also for %.*s%.*s and "
                             "%.*s: merge them, or give each its own fsTypes",
                             i + 1, SLICE_ARG(entry->storage_class), SLICE_ARG(entry->csi_driver),
                             SLICE_ARG(entry->runtime_class));
    return 0;
}

static int apply_presets(const struct reader *reader, const struct option *options, void *out);

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables above */
static int read_entries(const struct reader *reader, const struct option *option,
                        const struct yaml_node *node, struct defer_entry **out)
{
    size_t *count = (size_t *)(void *)(out + 1);

    if (want_sequence(reader, option, node) < 0)
        return reader->err->code;
    for (const struct yaml_node *item = node->first; item != NULL; item = item->next) {
        *out = grow_list(reader, option, item, *out, *count, sizeof **out);
        if (*out == NULL)
            return reader->err->code;
        struct defer_entry *entry = &(*out)[*count];
        *entry = (struct defer_entry){0};
        if (apply_presets(reader, option->members, entry) < 0 ||
            read_section(reader, option->members, item, entry) < 0 ||
            check_entry(reader, item, entry) < 0 || check_overlap(reader, item, *out, *count) < 0)
            return reader->err->code;
        ++*count;
    }
    return 0;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables above */
static int read_option(const struct reader *reader, const struct option *option,
                       const struct yaml_node *node, void *out)
{
    void *at = (char *)out + option->offset;

    switch (option->type) {
    case OPTION_STRING: return read_string(reader, node, at);
    case OPTION_BOOLEAN: return read_boolean(reader, node, at);
    case OPTION_BYTES:
    case OPTION_DURATION: return read_quantity(reader, option, node, at);
    case OPTION_WORD: return read_word(reader, option, node, at);
    case OPTION_WORDS: return read_words(reader, option, node, at);
    case OPTION_STRINGS: return read_strings(reader, option, node, at);
    case OPTION_SECTION: return read_section(reader, option->members, node, at);
    case OPTION_ENTRIES: return read_entries(reader, option, node, at);
    }
    return error_set(reader->err, ERROR_INVALID, "unknown option type");
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables above */
static int read_section(const struct reader *reader, const struct option *options,
                        const struct yaml_node *node, void *out)
{
    if (node->type != YAML_MAPPING)
        return yaml_fail(reader->err, node, "%.*s%sexpected a mapping", SLICE_ARG(node->key),
                         node->key.len == 0 ? "" : ": ");
    for (const struct yaml_node *child = node->first; child != NULL; child = child->next) {
        const struct option *option = option_find(options, child->key);
        if (option == NULL)
            return option_unknown(options, child, reader->err);
        if (read_option(reader, option, child, out) < 0)
            return reader->err->code;
    }
    return 0;
}

/* Reads each preset as if it were in the file. */
/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables */
static int apply_presets(const struct reader *reader, const struct option *options, void *out)
{
    for (const struct option *option = options; option->key != NULL; option++) {
        struct yaml_node node = {
            .type = YAML_SCALAR, .path = "defaults", .text = slice_of(option->preset)};
        int rc = 0;
        if (option->type == OPTION_SECTION)
            rc = apply_presets(reader, option->members, (char *)out + option->offset);
        else if (option->preset != NULL)
            rc = read_option(reader, option, &node, out);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* ---- the file ---- */

/* root: NULL for the defaults. */
static int read_tree(struct config *config, const struct yaml_node *root, struct error *err)
{
    struct reader reader = {&config->arena, err};
    int rc = apply_presets(&reader, file_options, config);

    if (rc == 0 && root != NULL)
        rc = read_section(&reader, file_options, root, config);
    return rc == 0 && root != NULL ? config_check(root, config, err) : rc;
}

int config_load_with_tree(struct config **out, struct yaml_node **root,
                          const struct config_source *from, struct error *err)
{
    struct config *config = calloc(1, sizeof *config);
    int rc = 0;

    *out = NULL;
    *root = NULL;
    if (config == NULL)
        return error_no_memory(err);
    arena_init(&config->arena, CONFIG_ARENA_BYTES_MAX);
    if (from->path != NULL)
        rc = config_load_tree(root, from, &config->arena, err);
    if (rc == 0)
        rc = read_tree(config, *root, err);
    if (rc < 0) {
        config_free(config);
        *root = NULL;
        return rc;
    }
    *out = config;
    return 0;
}

int config_load(struct config **out, const char *path, struct error *err)
{
    struct yaml_node *root;

    return config_load_with_tree(out, &root, &(struct config_source){.path = path}, err);
}

void config_free(struct config *config)
{
    if (config == NULL)
        return;
    arena_dispose(&config->arena);
    free(config);
}
