/*
 * manifests: reads files into an inventory: those of a repository, with what helm and kustomize
 * make of its charts and kustomizations, or a snapshot. What cannot be read does not keep the rest
 * from being read. It is a gap of the report, and an error after the report.
 *
 *     struct inventory inventory;
 *     struct audit_report report;
 *     struct manifests manifests;
 *     manifests_init(&manifests, &inventory, &report);
 *     int rc = manifests_read(&manifests, "deploy", err);
 *     manifests_end(&manifests);
 *     if (rc == 0)
 *         rc = manifests_are_whole(&manifests, err); // when the report is printed
 *
 * Threads: one.
 */
#ifndef EXTENDER_COMMANDS_AUDIT_MANIFESTS_H
#define EXTENDER_COMMANDS_AUDIT_MANIFESTS_H

#include "extender/commands/audit/audit_report.h"
#include "extender/commands/audit/comments.h"
#include "extender/commands/audit/rendering.h"
#include "extender/commands/audit/settings.h"
#include "extender/commands/inquiry/load.h"

enum { OTHER_KINDS_MAX = 64, OTHER_KINDS_SHOWN = 12 };

/* What was not read: how much, and why the first of it. */
struct unread {
    size_t count;
    size_t file; /* the last one in which something was not read */
    struct error first;
};

/* Folders that were not rendered, because there is no program: "a, b" behind the first one. */
struct unrendered {
    bool has_first;
    struct slice others;
};

struct manifests {
    struct inventory *inventory;
    struct audit_report *report;
    struct source source;
    struct load_progress progress;
    const struct audit_settings *settings; /* what is excluded; set by the owner */
    struct {
        size_t file; /* in which something could not be read; 0: none */
        bool is_template, is_manifest;
    } broken;
    size_t excluded;                                /* files and folders */
    const char *root;                               /* the folder that is read; NULL: a file */
    const char *prefix;                             /* of root, from the settings */
    struct comments comments;                       /* of the file that is read */
    struct rendering *rendering;                    /* that is read; NULL: files as they are */
    struct manifest_folder *folders;                /* that are still to be read */
    struct manifest_folder *kustomizations, **last; /* of these, in their order */
    struct manifest_folder *aside, **last_aside;    /* files in the folders of kustomizations */
    const char *others_named;                       /* after manifests_end */
    size_t files;                                   /* so far */
    size_t parts;                                   /* that nothing uses, and are not read */
    const char *first_part;
    struct unread problems, templates;    /* templates: without an error */
    struct unrendered charts, kustomized; /* of these */
    struct other_kind {
        struct type type;
        size_t count;
    } others[OTHER_KINDS_MAX]; /* objects that no rule reads, by their kinds */
    size_t other_kinds;        /* so many of these */
};

/* Must not be moved. Both are borrowed; the report counts the objects. */
void manifests_init(struct manifests *manifests, struct inventory *inventory,
                    struct audit_report *report);

/* Reads a file, a folder with all folders in it, or "-". Errors: ERROR_NO_MEMORY. */
int manifests_read(struct manifests *manifests, const char *path, struct error *err);

/* After all of them: adds the gaps. */
void manifests_end(struct manifests *manifests);

/* After the report. Errors: ERROR_INVALID: there is nothing that a rule reads; or that of what was
 * not read. */
int manifests_are_whole(const struct manifests *manifests, struct error *err);

#endif
