#include "extender/commands/audit/settings.h"

#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cache/objects/objects.h"
#include "config/yaml_node.h"
#include "extender/commands/audit/audit_report.h"

/* Appends each text of a list, with the separator behind it. check: what is wrong with a text; NULL
 * result: nothing. */
static int read_list(struct slice *out, const struct yaml_node *list, char separator,
                     const char *(*check)(struct slice text), struct arena *arena,
                     struct error *err)
{
    if (list->type != YAML_SEQUENCE)
        return yaml_fail(err, list, "%.*s: expected a list", SLICE_ARG(list->key));
    for (const struct yaml_node *item = list->first; item != NULL; item = item->next) {
        const char *problem = item->type == YAML_SCALAR ? check(item->text) : "expected a text";
        if (problem != NULL)
            return yaml_fail(err, item, "%.*s: %s", SLICE_ARG(list->key), problem);
        if (!arena_append(arena, out, item->text) ||
            !arena_append(arena, out, (struct slice){&separator, 1}))
            return error_no_memory(err);
    }
    return 0;
}

static const char *check_pattern(struct slice text)
{
    return text.len == 0 || slice_has(text, SLICE(","))
               ? "expected a pattern without a comma, as charts/old or *.gen.yaml"
               : NULL;
}

static const char *check_entry(struct slice text)
{
    return audit_is_entry(text) ? NULL
                                : "expected codes of rules and a reason, as \"CG103: rolled out by "
                                  "hand\"";
}

static int read_level(struct audit_settings *settings, const struct yaml_node *node,
                      struct error *err)
{
    char word[16];

    (void)snprintf(word, sizeof word, "%.*s", SLICE_ARG(node->text));
    return node->type == YAML_SCALAR && level_parse(&settings->fail_on, word)
               ? 0
               : yaml_fail(err, node, "failOn: expected error, warning, note or never");
}

/* From the folder of the settings. */
static int read_baseline(struct audit_settings *settings, const struct yaml_node *node,
                         struct arena *arena, struct error *err)
{
    const char *slash = strrchr(node->path, '/');
    int folder_bytes = slash == NULL || (node->text.len != 0 && node->text.ptr[0] == '/')
                           ? 0
                           : (int)(slash - node->path) + 1;

    if (node->type != YAML_SCALAR || node->text.len == 0)
        return yaml_fail(err, node, "baseline: expected a file");
    settings->baseline =
        arena_printf(arena, "%.*s%.*s", folder_bytes, node->path, SLICE_ARG(node->text)).ptr;
    return settings->baseline == NULL ? error_no_memory(err) : 0;
}

static int read_setting(struct audit_settings *settings, const struct yaml_node *node,
                        struct arena *arena, struct error *err)
{
    if (slice_equal(node->key, SLICE("exclude")))
        return read_list(&settings->exclude, node, ',', check_pattern, arena, err);
    if (slice_equal(node->key, SLICE("ignore")))
        return read_list(&settings->ignore, node, '\n', check_entry, arena, err);
    if (slice_equal(node->key, SLICE("failOn")))
        return read_level(settings, node, err);
    if (slice_equal(node->key, SLICE("baseline")))
        return read_baseline(settings, node, arena, err);
    return yaml_fail_key(err, node, "%.*s: expected exclude, ignore, failOn or baseline",
                         SLICE_ARG(node->key));
}

int settings_read(struct audit_settings *settings, const char *path, struct arena *arena,
                  struct error *err)
{
    struct yaml_node *root;

    if (yaml_load(&root, path, arena, err) < 0)
        return err->code;
    if (root->type != YAML_MAPPING)
        return yaml_fail(err, root, "expected exclude, ignore, failOn or baseline");
    for (const struct yaml_node *node = root->first; node != NULL; node = node->next)
        if (read_setting(settings, node, arena, err) < 0)
            return err->code;
    return 0;
}

bool settings_exclude(struct slice patterns, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    char pattern[PATH_MAX];
    struct slice word;

    while (words_next(&patterns, &word)) {
        if (word.len != 0 && word.ptr[word.len - 1] == '/')
            word.len--; /* a folder, as in .gitignore */
        (void)snprintf(pattern, sizeof pattern, "%.*s", SLICE_ARG(word));
        if (word.len != 0 && word.len < sizeof pattern &&
            (fnmatch(pattern, path, 0) == 0 || fnmatch(pattern, name, 0) == 0))
            return true;
    }
    return false;
}
