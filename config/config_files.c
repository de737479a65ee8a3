/* The configuration as one tree: a file, or the files of a folder, merged. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "config/base/file.h"
#include "config/config_internal.h"
#include "config/yaml_node.h"

enum {
    FILES_MAX = 8, /* a file takes over 1 MiB of the arena */
    READS_MAX = 3,
};

static bool is_folder(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* *.yaml, and not hidden: a mounted ConfigMap also has ..data. */
static int is_wanted(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);

    return entry->d_name[0] != '.' && len > 5 && strcmp(entry->d_name + len - 5, ".yaml") == 0;
}

/* The place of the child with that key, or of the next child. */
static struct yaml_node **find_child(struct yaml_node *mapping, struct slice key)
{
    struct yaml_node **at = &mapping->first;

    while (*at != NULL && !slice_equal((*at)->key, key))
        at = &(*at)->next;
    return at;
}

/* apiVersion and kind, which each file has. */
static bool is_type(const struct yaml_node *node)
{
    return slice_equal(node->key, SLICE("apiVersion")) || slice_equal(node->key, SLICE("kind"));
}

/* Moves the children of `from` into the mapping `into`. A key that both have is an error, except a
 * section, which is merged. It stops at the first unknown key, so that many keys take little time.
 */
/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables of config_options.c */
static int merge(struct yaml_node *into, struct yaml_node *from, const struct option *options,
                 struct error *err)
{
    struct yaml_node *next;

    for (struct yaml_node *child = from->first; child != NULL; child = next) {
        const struct option *option = option_find(options, child->key);
        struct yaml_node **at = find_child(into, child->key);
        next = child->next;
        child->next = NULL;
        if (option == NULL)
            return option_unknown(options, child, err);
        if (*at == NULL)
            *at = child;
        else if (option->type == OPTION_SECTION && child->type == YAML_MAPPING &&
                 (*at)->type == YAML_MAPPING) {
            if (merge(*at, child, option->members, err) < 0)
                return err->code;
        } else if (!is_type(child))
            return yaml_fail_key(err, child, "%.*s: %s also sets it, in line %zu",
                                 SLICE_ARG(child->key), (*at)->path, (*at)->key_at.line);
    }
    return 0;
}

/* A text, or without one the file at its path. */
static int merge_text(struct yaml_node *into, const struct config_text *text, struct arena *arena,
                      struct error *err)
{
    struct yaml_node *root = NULL;
    int rc = text->text.ptr == NULL ? yaml_load(&root, text->path, arena, err)
                                    : yaml_load_text(&root, text->path, text->text, arena, err);

    if (rc < 0)
        return rc;
    if (root->type != YAML_MAPPING)
        return yaml_fail(err, root, "expected a mapping");
    return config_check_type(root, err) < 0 ? err->code : merge(into, root, file_options, err);
}

static int merge_texts(struct yaml_node **out, const struct config_source *from,
                       struct arena *arena, struct error *err)
{
    struct yaml_node *root = arena_alloc(arena, sizeof *root);

    if (root == NULL)
        return error_no_memory(err);
    *root = (struct yaml_node){.type = YAML_MAPPING, .at = {1, 1}, .path = from->path};
    for (size_t i = 0; i < from->count; i++)
        if (merge_text(root, &from->texts[i], arena, err) < 0)
            return err->code;
    *out = root;
    return 0;
}

static int check_count(const char *path, const char *has, size_t count, struct error *err)
{
    if (count != 0 && count <= FILES_MAX)
        return 0;
    return error_set(err, ERROR_INVALID, "%s%s %zu files *.yaml: expected 1 to %d", path, has,
                     count, FILES_MAX);
}

static int merge_files(struct yaml_node **out, const char *folder, struct dirent **names, int count,
                       struct arena *arena, struct error *err)
{
    struct config_text files[FILES_MAX] = {{.path = NULL}};

    if (check_count(folder, ": the folder has", (size_t)count, err) < 0)
        return err->code;
    for (int i = 0; i < count; i++) {
        files[i].path = arena_printf(arena, "%s/%s", folder, names[i]->d_name).ptr;
        if (files[i].path == NULL)
            return error_no_memory(err);
    }
    return merge_texts(out, &(struct config_source){folder, files, (size_t)count}, arena, err);
}

static int load_folder(struct yaml_node **out, const char *path, struct arena *arena,
                       struct error *err)
{
    struct dirent **names = NULL;
    int count = scandir(path, &names, is_wanted, alphasort);
    int rc = count < 0 ? error_system(err, errno, "%s", path)
                       : merge_files(out, path, names, count, arena, err);

    for (int i = 0; i < count; i++)
        free(names[i]);
    free(names);
    return rc;
}

int config_load_tree(struct yaml_node **out, const struct config_source *from, struct arena *arena,
                     struct error *err)
{
    const char *path = from->path;
    struct file_mark before, after;
    int rc = 0, reads = 0;

    if (from->texts != NULL)
        return check_count(path, " has", from->count, err) < 0 ? err->code
                                                               : merge_texts(out, from, arena, err);
    if (!is_folder(path))
        return yaml_load(out, path, arena, err);
    do { /* the kubelet may replace all files in between */
        arena_reset(arena);
        before = file_mark(path);
        rc = load_folder(out, path, arena, err);
        after = file_mark(path);
    } while (!file_mark_equal(&before, &after) && ++reads < READS_MAX);
    return rc;
}
