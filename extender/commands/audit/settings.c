#include "extender/commands/audit/settings.h"

#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cache/objects/objects.h"
#include "config/yaml_node.h"
#include "extender/commands/audit/audit_report.h"

/* ---- where they are ---- */

static bool folder_has(struct slice folder, const char *name)
{
    char path[PATH_MAX];
    struct stat status;

    return (size_t)snprintf(path, sizeof path, "%.*s/%s", SLICE_ARG(folder), name) < sizeof path &&
           lstat(path, &status) == 0;
}

/* The folder in which they are: `folder`, or one above; empty: none. here: where the command runs.
 */
static struct slice find_folder(struct slice folder, struct slice here)
{
    struct slice found = SLICE("");
    size_t whole = folder.len;

    while (folder.len > 1) {
        bool is_root = folder_has(folder, ".git");
        if (found.len == 0 && folder_has(folder, SETTINGS_NAME))
            found = folder;
        if (found.len == whole || is_root || (found.len != 0 && slice_equal(folder, here)))
            return found;
        while (folder.len > 1 && folder.ptr[folder.len - 1] != '/')
            folder.len--;
        folder.len -= folder.len > 1;
    }
    return SLICE("");
}

int settings_find(const char **out, const char *path, struct arena *arena, struct error *err)
{
    char *here = realpath(".", NULL), *real = realpath(path, NULL);
    struct slice folder = find_folder(slice_of(real), slice_of(here));
    const char *found = NULL;
    size_t bytes = here == NULL ? 0 : strlen(here);

    if (folder.len != 0)
        found = arena_printf(arena, "%.*s/" SETTINGS_NAME, SLICE_ARG(folder)).ptr;
    if (found != NULL && here != NULL && strncmp(found, here, bytes) == 0 && found[bytes] == '/')
        found += bytes + 1;
    free(here);
    free(real);
    *out = found;
    return found == NULL && folder.len != 0 ? error_no_memory(err) : 0;
}

const char *settings_prefix(const struct audit_settings *settings, const char *folder,
                            struct arena *arena)
{
    char *above = settings->path == NULL ? NULL : realpath(settings->path, NULL);
    char *real = realpath(folder, NULL);
    const char *prefix = "", *slash = above == NULL ? NULL : strrchr(above, '/');
    size_t bytes = slash == NULL ? 0 : (size_t)(slash - above) + 1;

    if (real != NULL && bytes != 0 && strncmp(real, above, bytes) == 0)
        prefix = arena_printf(arena, "%s/", real + bytes).ptr;
    free(above);
    free(real);
    return prefix;
}

/* ---- what they say ---- */

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

    settings->path = path;
    if (yaml_load(&root, path, arena, err) < 0)
        return err->code;
    if (root->type != YAML_MAPPING)
        return yaml_fail(err, root, "expected exclude, ignore, failOn or baseline");
    for (const struct yaml_node *node = root->first; node != NULL; node = node->next)
        if (read_setting(settings, node, arena, err) < 0)
            return err->code;
    return 0;
}

bool settings_exclude(const struct audit_settings *settings, const char *prefix, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    struct slice patterns = settings->exclude, word;
    char pattern[PATH_MAX], whole[PATH_MAX];

    (void)snprintf(whole, sizeof whole, "%s%s", prefix, path);
    while (words_next(&patterns, &word)) {
        if (word.len != 0 && word.ptr[word.len - 1] == '/')
            word.len--; /* a folder, as in .gitignore */
        if (word.len > 2 && word.ptr[0] == '.' && word.ptr[1] == '/')
            word = (struct slice){word.ptr + 2, word.len - 2};
        (void)snprintf(pattern, sizeof pattern, "%.*s", SLICE_ARG(word));
        if (word.len != 0 && word.len < sizeof pattern &&
            (fnmatch(pattern, path, 0) == 0 || fnmatch(pattern, whole, 0) == 0 ||
             fnmatch(pattern, name, 0) == 0))
            return true;
    }
    return false;
}
