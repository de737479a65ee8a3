/*
 * rendering: what the user's own helm or kustomize makes of a folder that is a chart or a
 * kustomization, and where in the folder an object of that was made.
 *
 *     const struct renderer *renderer = renderer_of("deploy");
 *     struct rendering rendering;
 *     if (renderer != NULL && rendering_make(&rendering, renderer, "deploy", ns, arena, err) > 0)
 *         printf("%s printed %s\n", rendering.command, rendering.path);
 *     rendering_dispose(&rendering);
 *
 * Ownership: texts are in the arena. Threads: one.
 */
#ifndef EXTENDER_COMMANDS_AUDIT_RENDERING_H
#define EXTENDER_COMMANDS_AUDIT_RENDERING_H

#include <stdio.h>
#include <sys/stat.h>

#include "extender/commands/audit/inventory.h"

struct renderer;

struct rendering {
    const struct renderer *renderer;
    const char *folder;
    const char *file; /* that makes it one */
    struct arena *arena;
    const char *command; /* "helm template charts/web" */
    const char *path;    /* what it printed can be read there */
    FILE *output;        /* the same */
    char *line;          /* of the output, that was read last */
    size_t line_bytes;
    size_t line_number;
    const char *source; /* the file that it was made of, as helm says; NULL: not known */
};

/* What renders the folder; NULL: it is neither a chart nor a kustomization. */
const struct renderer *renderer_of(const char *folder);

/* Whether it is a chart, whose templates and charts are part of it. */
bool renderer_is_chart(const struct renderer *renderer);
bool renderer_has_part(const struct renderer *renderer, const char *name);

/* Whether the kustomization only lists others, or changes nothing of claims and pods that the audit
 * reads: what it lists may be read without it. */
bool renderer_only_lists(const struct renderer *renderer, const char *folder);

/* Calls back for each file that the kustomization's file names, and for each folder in resources,
 * bases and components: it uses those that are kustomizations. False: its file cannot be read. */
bool renderer_find_used(const struct renderer *renderer, const char *folder,
                        void (*take)(void *context, const struct stat *used), void *context);

/* The name of the file that makes a folder one; and whether a file of that name does. */
const char *renderer_file(const struct renderer *renderer);
bool renderer_is_file(const char *name);

/* ns: of the objects; empty: not given. 0: there is nothing to render: only others use it.
 * Ownership: rendering_dispose, also after an error. Errors: ERROR_NOT_FOUND: no such program;
 * ERROR_INVALID: it has failed; ERROR_SYSTEM, ERROR_NO_MEMORY. */
int rendering_make(struct rendering *rendering, const struct renderer *renderer, const char *folder,
                   struct slice ns, struct arena *arena, struct error *err);
void rendering_dispose(struct rendering *rendering);

/* Where the object of that kind, at that line of the output, was made: a file of the folder, and
 * the line if only one of its lines is for that kind. Lines have to come in order. */
struct spot rendering_spot(struct rendering *rendering, size_t line, const char *kind);

#endif
