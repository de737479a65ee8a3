#include "extender/commands/audit/manifests.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "config/base/text.h"
#include "extender/commands/audit/reading.h"

/* A folder that is still to be read; or a file of a kustomization's folder. */
struct manifest_folder {
    struct manifest_folder *next;
    const char *path;
    bool is_rendered; /* with the one that it is in: only what is rendered by itself is read */
    const struct renderer *renderer; /* NULL: none */
    struct stat status;
    bool is_used;    /* by a kustomization; of a folder: by another one */
    bool is_reached; /* of a kustomization: it is rendered, or one that is uses it */
    bool is_read;    /* what it uses is marked as reached */
    bool has_failed; /* it could not be rendered */
    bool is_listed;  /* by one that has failed, and does nothing but list */
};

/* ---- what was not read ---- */

/* Of templates, a file counts once. */
static void note(struct manifests *manifests, struct error *err, bool is_template)
{
    struct unread *unread = is_template ? &manifests->templates : &manifests->problems;

    if (is_template && unread->count != 0 && unread->file == manifests->files)
        return;
    make_printable(err->message);
    unread->file = manifests->files;
    if (unread->count++ == 0)
        unread->first = *err;
    if (!is_template)
        gaps_add(&manifests->report->findings.gaps, UINT64_MAX, "not read: %s", err->message);
}

/* Whether people need not know that no rule reads it: a snapshot of claimguard has it, or the
 * inventory has read all that matters. */
static bool is_silent(const struct type *type)
{
    struct slice api_version = slice_of(type->api_version), kind = slice_of(type->kind);

    return own_kind_of(api_version, kind) != OWN_NONE ||
           kind_of_any(api_version, kind) == KIND_WEBHOOKS;
}

static int compare_kinds(const void *a, const void *b)
{
    const struct type *x = a, *y = b;
    int order = slice_compare(slice_of(x->kind), slice_of(y->kind));

    return order != 0 ? order
                      : slice_compare(api_group_of(slice_of(x->api_version)),
                                      api_group_of(slice_of(y->api_version)));
}

/* The most frequent ones first. */
static int compare_counts(const void *a, const void *b)
{
    const struct other_kind *x = a, *y = b;

    return x->count != y->count ? (x->count < y->count ? 1 : -1) : compare_kinds(a, b);
}

static void count_other(struct manifests *manifests, const struct type *type)
{
    struct other_kind *others = manifests->others;
    size_t i = 0;

    if (is_silent(type))
        return;
    while (i < manifests->other_kinds && compare_kinds(&others[i].type, type) != 0)
        i++;
    if (i == OTHER_KINDS_MAX)
        return;
    others[i].type = *type;
    others[i].count++;
    manifests->other_kinds += i == manifests->other_kinds;
}

/* ---- files ---- */

/* Of what was rendered, the place is that of the object in the file that it was made of. */
static void move_text(struct manifests *manifests, struct source_text *text)
{
    struct spot spot = rendering_spot(manifests->rendering, text->place.line, text->type->kind);

    text->path = spot.path;
    text->place = (struct place){spot.line, spot.column};
    text->is_made = true;
    text->mark_count = 0;
}

/* The comments in the object's lines, for the inventory. False: no memory. */
static bool find_remarks(struct manifests *manifests, const struct source_text *text)
{
    manifests->inventory->remarks =
        comments_between(&manifests->comments, text->place.line, source_text_last_line(text),
                         &manifests->report->arena);
    return manifests->inventory->remarks.ptr != NULL;
}

/* Whether kubectl refuses the object: one of a kind that rules read, without a version. Other tools
 * have kinds of their own. */
static bool lacks_version(const struct source_text *text)
{
    bool is_read = false;

    for (int kind = 0; kind < KIND_NAMED_COUNT; kind++)
        is_read |= reading_has((enum kind)kind) &&
                   strcmp(kind_text((enum kind)kind), text->type->kind) == 0;
    return is_read && text->type->api_version[0] == '\0';
}

static int take(void *context, const struct source_text *text, const struct object *object,
                struct error *err)
{
    struct manifests *manifests = context;
    struct source_text moved = *text;

    (void)object;
    if (!find_remarks(manifests, text))
        return error_no_memory(err);
    if (manifests->rendering != NULL)
        move_text(manifests, &moved);
    int used = lacks_version(text)
                   ? error_set(err, ERROR_INVALID, "%s:%zu:%zu: apiVersion is missing", moved.path,
                               moved.place.line, moved.place.column)
                   : inventory_take(manifests->inventory, &moved, err);
    manifests->report->findings.objects += used > 0;
    if (used == 0)
        count_other(manifests, text->type);
    if (used != ERROR_INVALID && used != ERROR_TOO_BIG)
        return used;
    note(manifests, err, manifests->rendering == NULL && manifests->inventory->is_template);
    *err = (struct error){0};
    return 1; /* it is none of another kind */
}

/* Whether the text of the file has the word, whose beginning is nowhere else in it. */
static bool has_word(const char *path, const char *word)
{
    FILE *file = fopen(path, "re");
    size_t matched = 0;

    for (int c; file != NULL && word[matched] != '\0' && (c = getc(file)) != EOF;)
        matched = c == word[matched] ? matched + 1 : c == word[0];
    if (file != NULL)
        (void)fclose(file); /* read only: nothing is lost */
    return word[matched] == '\0';
}

/* What a file is, part of which cannot be read: a template, by braces outside of its texts, or by
 * its place; and in folders, many files are no manifests. */
static void judge_file(struct manifests *manifests)
{
    const char *path = manifests->source.path;
    bool is_made = manifests->rendering != NULL;

    if (manifests->broken.file == manifests->files)
        return;
    bool is_template =
        !is_made && (manifests->comments.has_braces ||
                     (slice_has(slice_of(path), SLICE("templates/")) && has_word(path, "{{")));
    manifests->broken.file = manifests->files;
    manifests->broken.is_template = is_template;
    manifests->broken.is_manifest = is_made || manifests->root == NULL || has_word(path, "kind:") ||
                                    has_word(path, "\"kind\"") || has_word(path, "apiVersion") ||
                                    (is_template && has_word(path, "include \""));
}

/* A part of a file cannot be read. */
static int take_broken(void *context, struct error *err)
{
    struct manifests *manifests = context;

    judge_file(manifests);
    if (manifests->broken.is_manifest || err->code == ERROR_SYSTEM)
        note(manifests, err, manifests->broken.is_template);
    else
        manifests->report->findings.skipped++;
    *err = (struct error){0};
    return 0;
}

static int read_file(struct manifests *manifests, const char *path, struct error *err)
{
    struct source_report report;

    manifests->files++;
    manifests->source.path = path;
    manifests->source.name = manifests->rendering == NULL ? NULL : manifests->rendering->command;
    if (comments_read(&manifests->comments, path, &manifests->report->arena, err) < 0)
        return err->code;
    int rc = source_read(&manifests->source, &report, err);
    manifests->report->findings.skipped += report.skipped;
    if (rc == 0 || rc == ERROR_NO_MEMORY)
        return rc;
    return take_broken(manifests, err);
}

/* ---- folders ---- */

/* Of folders for which there is no program, the first one is noted with the reason and what to do,
 * and the others by their names. */
static bool names_it_only(struct manifests *manifests, const struct manifest_folder *folder)
{
    struct unrendered *unrendered =
        renderer_is_chart(folder->renderer) ? &manifests->charts : &manifests->kustomized;

    if (!unrendered->has_first) {
        unrendered->has_first = true;
        return false;
    }
    audit_list(manifests->report, &unrendered->others, slice_of(folder->path));
    manifests->problems.count++;
    return true;
}

static int read_rendered(struct manifests *manifests, struct manifest_folder *folder,
                         struct error *err)
{
    struct audit_report *report = manifests->report;
    struct rendering rendering;

    load_progress_say(&manifests->progress, "rendering", folder->path);
    int rc =
        rendering_make(&rendering, folder->renderer, folder->path, report->ns, &report->arena, err);

    manifests->rendering = &rendering;
    folder->has_failed = rc < 0;
    if (rc == 0 && manifests->parts++ == 0)
        manifests->first_part = folder->path;
    if (rc > 0)
        rc = read_file(manifests, rendering.path, err);
    manifests->rendering = NULL;
    rendering_dispose(&rendering);
    if (rc == 0 || rc == ERROR_NO_MEMORY)
        return rc;
    if (rc == ERROR_NOT_FOUND && names_it_only(manifests, folder))
        return 0;
    note(manifests, err, false);
    return 0;
}

static int add_path(struct manifests *manifests, struct manifest_folder **at, const char *path,
                    bool is_rendered, struct error *err)
{
    struct arena *arena = &manifests->report->arena;
    struct manifest_folder *folder = arena_alloc(arena, sizeof *folder);
    struct slice kept = arena_copy(arena, slice_of(path));

    if (folder == NULL || kept.ptr == NULL)
        return error_no_memory(err);
    *folder = (struct manifest_folder){.next = *at, .path = kept.ptr, .is_rendered = is_rendered};
    (void)stat(path, &folder->status); /* or reading it fails */
    *at = folder;
    return 0;
}

/* Whether a file of the folder is to be read: a FIFO, for which reading waits, is none. */
static bool is_manifest(const char *path, const char *name)
{
    struct stat status;

    return source_has_name(name) && (stat(path, &status) != 0 || S_ISREG(status.st_mode));
}

/* What kustomizations name is read by them; the others are read when all of these are known. */
static int set_aside(struct manifests *manifests, const char *path, struct error *err)
{
    if (add_path(manifests, manifests->last_aside, path, false, err) < 0)
        return err->code;
    manifests->last_aside = &(*manifests->last_aside)->next;
    return 0;
}

/* Of the code of others, which has manifests for its tests. */
static bool is_foreign(const char *name)
{
    return strcmp(name, "vendor") == 0 || strcmp(name, "node_modules") == 0;
}

/* Whether a file or a folder of the folder that is read is left out: by the settings, or as above.
 */
static bool is_excluded(struct manifests *manifests, const char *path, bool is_foreign,
                        bool is_read)
{
    size_t root_bytes = strlen(manifests->root);
    const char *below = path + root_bytes + strspn(path + root_bytes, "/");

    if (!is_foreign &&
        (!is_read || !settings_exclude(manifests->settings, manifests->prefix, below)))
        return false;
    manifests->excluded++;
    return true;
}

/* A link to a folder is not followed. */
static bool is_link_to_folder(const char *path, const struct stat *status)
{
    struct stat target;

    return S_ISLNK(status->st_mode) && stat(path, &target) == 0 && S_ISDIR(target.st_mode);
}

/* A link to a file that is read at its own place in the folders. What begins with a dot is not. */
static bool is_link_within(const struct manifests *manifests, const char *path,
                           const struct stat *status)
{
    char *target = S_ISLNK(status->st_mode) ? realpath(path, NULL) : NULL;
    char *root = target == NULL ? NULL : realpath(manifests->root, NULL);
    size_t bytes = root == NULL ? 0 : strlen(root);
    bool is_within = root != NULL && strncmp(target, root, bytes) == 0 && target[bytes] == '/' &&
                     strstr(target + bytes, "/.") == NULL && source_has_name(target) &&
                     !settings_exclude(manifests->settings, manifests->prefix, target + bytes + 1);

    free(root);
    free(target);
    return is_within;
}

/* Reads a file of the folder, or adds the folder in it to those that are to be read, at *at. */
static int read_entry(struct manifests *manifests, const struct manifest_folder *folder,
                      const char *name, struct manifest_folder ***at, struct error *err)
{
    struct stat status;
    char *path = NULL;
    int rc = 0;

    if (asprintf(&path, "%s/%s", folder->path, name) < 0)
        return error_no_memory(err);
    bool is_known = lstat(path, &status) == 0;
    bool is_folder = is_known && S_ISDIR(status.st_mode);
    if (!is_known) { /* whether it is a folder */
        (void)error_system(err, errno, "%s", path);
        note(manifests, err, false);
    } else if (is_excluded(manifests, path,
                           (is_folder && is_foreign(name)) || is_link_to_folder(path, &status),
                           is_folder || source_has_name(name))) {
        rc = 0;
    } else if (is_folder) {
        rc = add_path(manifests, *at, path, folder->is_rendered, err);
        *at = rc == 0 ? &(**at)->next : *at;
    } else if (is_manifest(path, name) && !renderer_is_file(name) &&
               !is_link_within(manifests, path, &status)) {
        rc =
            folder->is_rendered ? set_aside(manifests, path, err) : read_file(manifests, path, err);
    }
    free(path);
    return rc;
}

static bool is_part(const struct manifest_folder *folder, const char *name)
{
    return folder->renderer != NULL && renderer_has_part(folder->renderer, name);
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int read_entries(struct manifests *manifests, const struct manifest_folder *folder,
                        struct error *err)
{
    struct manifest_folder **at = &manifests->folders;
    struct dirent **entries = NULL;
    int rc = 0, count = scandir(folder->path, &entries, is_visible, alphasort);

    if (count < 0) {
        (void)error_system(err, errno, "%s", folder->path);
        note(manifests, err, false);
    }
    for (int i = 0; i < count; i++) {
        if (rc == 0 && !is_part(folder, entries[i]->d_name))
            rc = read_entry(manifests, folder, entries[i]->d_name, &at, err);
        free(entries[i]);
    }
    free((void *)entries);
    return rc;
}

/* Whether the file that makes the folder a chart or a kustomization is left out by the settings. */
static bool is_left_out(const struct manifests *manifests, const struct manifest_folder *folder)
{
    const char *below = folder->path + strlen(manifests->root);
    char *path = NULL;
    bool is_out = false;

    if (asprintf(&path, "%s/%s", below, renderer_file(folder->renderer)) >= 0)
        is_out = settings_exclude(manifests->settings, manifests->prefix, path + strspn(path, "/"));
    free(path);
    return is_out;
}

/* A chart is rendered at once, and a kustomization when all are known. */
static int read_folder(struct manifests *manifests, struct manifest_folder *folder,
                       struct error *err)
{
    int rc = 0;

    folder->renderer = renderer_of(folder->path);
    if (folder->renderer != NULL && is_left_out(manifests, folder))
        folder->renderer = NULL;
    if (folder->renderer != NULL && renderer_is_chart(folder->renderer)) {
        rc = read_rendered(manifests, folder, err);
    } else if (folder->renderer != NULL) {
        folder->is_rendered = true;
        *manifests->last = folder;
        manifests->last = &folder->next;
    }
    return rc == 0 ? read_entries(manifests, folder, err) : rc;
}

static void mark_used(void *context, const struct stat *used)
{
    const struct manifests *manifests = context;

    for (struct manifest_folder *at = S_ISDIR(used->st_mode) ? manifests->kustomizations
                                                             : manifests->aside;
         at != NULL; at = at->next)
        at->is_used |= at->status.st_ino == used->st_ino && at->status.st_dev == used->st_dev;
}

/* Of a kustomization whose file cannot be read, which is an error of who renders it: its files may
 * be patches. */
static void mark_below(const struct manifests *manifests, const char *folder)
{
    size_t bytes = strlen(folder);

    for (struct manifest_folder *at = manifests->aside; at != NULL; at = at->next)
        at->is_used |= strncmp(at->path, folder, bytes) == 0 && at->path[bytes] == '/';
}

/* The kustomization in that folder; NULL: none. */
static struct manifest_folder *find_kustomization(const struct manifests *manifests,
                                                  const struct stat *used)
{
    struct manifest_folder *at = S_ISDIR(used->st_mode) ? manifests->kustomizations : NULL;

    while (at != NULL && (at->status.st_ino != used->st_ino || at->status.st_dev != used->st_dev))
        at = at->next;
    return at;
}

static void mark_reached(void *context, const struct stat *used)
{
    struct manifest_folder *found = find_kustomization(context, used);

    if (found != NULL)
        found->is_reached = true;
}

/* Marks what those that are reached use, and so on. */
static void find_reached(struct manifests *manifests)
{
    bool has_more = true;

    while (has_more) {
        has_more = false;
        for (struct manifest_folder *at = manifests->kustomizations; at != NULL; at = at->next) {
            if (!at->is_reached || at->is_read)
                continue;
            has_more = at->is_read = true;
            (void)renderer_find_used(at->renderer, at->path, mark_reached, manifests);
        }
    }
}

static void mark_listed(void *context, const struct stat *used)
{
    struct manifest_folder *found = find_kustomization(context, used);

    if (found != NULL)
        found->is_listed = true;
}

/* What a kustomization that could not be rendered lists is rendered by itself, unless another one
 * that was rendered uses it. Not if it does more than list: its patches would be missing. */
static int read_listed(struct manifests *manifests, struct error *err)
{
    struct manifest_folder *first = manifests->kustomizations;
    bool has_more = false;
    int rc = 0;

    for (struct manifest_folder *at = first; at != NULL; at = at->next) {
        at->is_reached = (!at->is_used || !at->is_reached) && !at->has_failed;
        at->is_read = false;
        has_more |= at->has_failed;
    }
    if (has_more)
        find_reached(manifests);
    while (has_more && rc == 0) {
        has_more = false;
        for (struct manifest_folder *at = first; at != NULL; at = at->next)
            if (at->has_failed && !at->is_read && renderer_only_lists(at->renderer, at->path))
                (void)renderer_find_used(at->renderer, at->path, mark_listed, manifests);
        for (struct manifest_folder *at = first; at != NULL && rc == 0; at = at->next) {
            at->is_read |= at->has_failed;
            if (!at->is_listed || at->is_reached || at->has_failed)
                continue;
            has_more = at->is_reached = true;
            rc = read_rendered(manifests, at, err);
        }
    }
    return rc;
}

/* Those that no other one uses, and the files in their folders that none of them names. */
static int read_kustomizations(struct manifests *manifests, struct error *err)
{
    struct manifest_folder *first = manifests->kustomizations;
    int rc = 0;

    for (struct manifest_folder *at = first; at != NULL; at = at->next) {
        bool is_used = at->is_used;
        if (!renderer_find_used(at->renderer, at->path, mark_used, manifests))
            mark_below(manifests, at->path);
        at->is_used = is_used; /* it may name its own folder, as "." */
    }
    for (struct manifest_folder *at = first; at != NULL; at = at->next)
        at->is_reached = !at->is_used;
    find_reached(
        manifests); /* of two that use each other, none: they are rendered, which says so */
    for (struct manifest_folder *at = first; at != NULL && rc == 0; at = at->next)
        if (!at->is_used || !at->is_reached)
            rc = read_rendered(manifests, at, err);
    if (rc == 0)
        rc = read_listed(manifests, err);
    for (const struct manifest_folder *at = manifests->aside; at != NULL && rc == 0; at = at->next)
        if (!at->is_used)
            rc = read_file(manifests, at->path, err);
    return rc;
}

static int read_folders(struct manifests *manifests, const char *path, struct error *err)
{
    int rc = add_path(manifests, &manifests->folders, path, false, err);

    manifests->root = path;
    manifests->prefix = settings_prefix(manifests->settings, path, &manifests->report->arena);
    if (manifests->prefix == NULL)
        return error_no_memory(err);
    manifests->kustomizations = NULL;
    manifests->last = &manifests->kustomizations;
    manifests->aside = NULL;
    manifests->last_aside = &manifests->aside;
    while (rc == 0 && manifests->folders != NULL) {
        struct manifest_folder *folder = manifests->folders;
        manifests->folders = folder->next;
        folder->next = NULL;
        rc = read_folder(manifests, folder, err);
    }
    return rc == 0 ? read_kustomizations(manifests, err) : rc;
}

/* ---- all of them ---- */

void manifests_init(struct manifests *manifests, struct inventory *inventory,
                    struct audit_report *report)
{
    *manifests = (struct manifests){.inventory = inventory,
                                    .report = report,
                                    .source = {.text_sink = take,
                                               .broken = take_broken,
                                               .context = manifests,
                                               .wants_places = true,
                                               .skips_foreign = true}};
}

/* All that was read, and all that was not. */
static size_t count_all(const struct manifests *manifests)
{
    const struct findings *findings = &manifests->report->findings;

    return findings->objects + findings->skipped + manifests->problems.count +
           manifests->templates.count;
}

int manifests_read(struct manifests *manifests, const char *path, struct error *err)
{
    struct stat status;
    bool is_stdin = strcmp(path, "-") == 0;
    size_t count = count_all(manifests), bytes = strlen(path);

    while (bytes > 1 && path[bytes - 1] == '/') /* "deploy/": names of files begin with it */
        bytes--;
    path = arena_printf(&manifests->report->arena, "%.*s", (int)bytes, path).ptr;
    if (path == NULL)
        return error_no_memory(err);

    manifests->root = NULL;
    load_progress_begin(&manifests->progress, &manifests->source);
    int rc = !is_stdin && stat(path, &status) == 0 && S_ISDIR(status.st_mode)
                 ? read_folders(manifests, path, err)
                 : read_file(manifests, path, err);
    load_progress_end(&manifests->progress);
    if (rc < 0 || count_all(manifests) != count)
        return rc;
    (void)error_set(err, ERROR_INVALID, "%s: contains no Kubernetes object",
                    is_stdin ? "<stdin>" : path);
    note(manifests, err, false);
    return 0;
}

/* "Service (2), Ingress.networking.k8s.io (1)"; empty: there are none. */
static struct slice name_others(struct manifests *manifests)
{
    struct audit_report *report = manifests->report;
    struct slice text = SLICE("");
    size_t shown =
        manifests->other_kinds > OTHER_KINDS_SHOWN ? OTHER_KINDS_SHOWN : manifests->other_kinds;

    qsort(manifests->others, manifests->other_kinds, sizeof *manifests->others, compare_counts);
    qsort(manifests->others, shown, sizeof *manifests->others, compare_kinds);
    for (size_t i = 0; i < shown; i++) {
        struct other_kind *other = &manifests->others[i];
        struct slice group = api_group_of(slice_of(other->type.api_version));
        make_printable(other->type.kind);
        make_printable(other->type.api_version);
        audit_list(report, &text,
                   arena_printf(&report->arena, "%s%s%.*s (%zu)", other->type.kind,
                                group.len == 0 ? "" : ".", SLICE_ARG(group), other->count));
    }
    if (shown != manifests->other_kinds)
        audit_list(report, &text,
                   arena_printf(&report->arena, "and %zu more", manifests->other_kinds - shown));
    return text;
}

static void put_unrendered(struct gaps *gaps, const char *what, const struct unrendered *unrendered)
{
    if (unrendered->others.len != 0)
        gaps_add(gaps, UINT64_MAX, "other %s that were not rendered, for the same reason: %.*s",
                 what, SLICE_ARG(unrendered->others));
}

void manifests_end(struct manifests *manifests)
{
    struct gaps *gaps = &manifests->report->findings.gaps;
    struct slice others = name_others(manifests);

    manifests->others_named = others.len == 0 ? NULL : others.ptr;
    put_unrendered(gaps, "charts", &manifests->charts);
    put_unrendered(gaps, "kustomizations", &manifests->kustomized);
    if (manifests->templates.count != 0)
        gaps_add(gaps, 0, "templates were not read: %zu; the first one: %s",
                 manifests->templates.count, manifests->templates.first.message);
    if (manifests->parts != 0)
        gaps_add(
            gaps, 0,
            "Components and library charts that no kustomization and no chart of the input uses "
            "were not read: %zu; the first one: %s",
            manifests->parts, manifests->first_part);
    if (manifests->report->findings.objects == 0)
        gaps_add(gaps, UINT64_MAX, "there is no object that a rule reads");
    if (manifests->excluded != 0)
        gaps_add(gaps, 0, "excluded files and folders: %zu", manifests->excluded);
    if (others.len != 0)
        gaps_add(gaps, 0, "no rule reads these kinds: %.*s", SLICE_ARG(others));
}

int manifests_are_whole(const struct manifests *manifests, struct error *err)
{
    size_t count = manifests->problems.count;

    if (count != 0)
        *err = manifests->problems.first;
    if (count > 1)
        return error_wrap(err, "%zu files, charts or kustomizations were not read; the first one",
                          count);
    if (count != 0 || manifests->report->findings.objects != 0)
        return count == 0 ? 0 : err->code;
    if (manifests->templates.count != 0) {
        *err = manifests->templates.first;
        return err->code;
    }
    return error_set(err, ERROR_INVALID, "there is no object that a rule reads, %s%s",
                     manifests->others_named == NULL ? "and no Kubernetes object" : "only others: ",
                     manifests->others_named == NULL ? "" : manifests->others_named);
}
