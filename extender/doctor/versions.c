#include "extender/doctor/versions.h"

#include <jansson.h>
#include <stdlib.h>

#include "extender/certificates/api_call.h"

enum {
    MINOR_EXCLUSIVE = 27, /* from then on, the gate ReadWriteOncePod is on by default */
};

static int ask(struct api *api, const char *path, json_t **out, struct error *err)
{
    struct request_answer answer;

    *out = NULL;
    if (api_call(api, &(struct request){.method = "GET", .path = path}, &answer, err) < 0)
        return err->code;
    if (answer.status == 200)
        *out = json_loadb(answer.body.ptr, answer.body.len, 0, NULL);
    return 0;
}

static int ask_version(struct server_version *out, struct api *api, struct arena *arena,
                       struct error *err)
{
    json_t *answer;

    if (ask(api, "/version", &answer, err) < 0)
        return err->code;
    const char *major = json_string_value(json_object_get(answer, "major"));
    const char *minor = json_string_value(json_object_get(answer, "minor")); /* or "37+" */
    const char *text = json_string_value(json_object_get(answer, "gitVersion"));
    out->text = arena_copy(arena, slice_of(text == NULL ? "" : text));
    if (major != NULL && strcmp(major, "1") == 0 && minor != NULL)
        out->minor = (unsigned)strtoul(minor, NULL, 10);
    json_decref(answer);
    return out->text.ptr == NULL ? error_no_memory(err) : 0;
}

static int ask_classes(struct server_version *out, struct api *api, struct error *err)
{
    json_t *answer;
    const json_t *resource;
    size_t i;

    if (ask(api, "/apis/storage.k8s.io/v1", &answer, err) < 0)
        return err->code;
    out->has_attributes_classes = answer == NULL; /* not known */
    json_array_foreach (json_object_get(answer, "resources"), i, resource) {
        const char *name = json_string_value(json_object_get(resource, "name"));
        if (name != NULL && strcmp(name, "volumeattributesclasses") == 0)
            out->has_attributes_classes = true;
    }
    json_decref(answer);
    return 0;
}

int versions_ask(struct server_version *out, const struct kubeconfig *kubeconfig,
                 struct arena *arena, struct error *err)
{
    struct api api;
    int rc = api_open(&api, kubeconfig, err);

    *out = (struct server_version){.minor = 0};
    if (rc == 0)
        rc = ask_version(out, &api, arena, err);
    if (rc == 0)
        rc = ask_classes(out, &api, err);
    api_close(&api);
    return rc;
}

void versions_check(const struct server_version *version, const struct config *config,
                    struct findings *findings)
{
    const struct location place = {.name = SLICE("the API server")};

    if (version->minor == 0)
        finding_unread(findings, "the API server's version: it is not known");
    else if (version->minor < MINOR_EXCLUSIVE)
        (void)finding_add(findings, "CG902", place, "Kubernetes 1.29",
                          "%.*s: claims can be ReadWriteOncePod only with the feature gate of that "
                          "name, before 1.27",
                          SLICE_ARG(version->text));
    if (config->volume_attributes_classes.mode != MODE_OFF && !version->has_attributes_classes)
        finding_lower(finding_add(findings, "CG902", place,
                                  "volumeAttributesClasses: {mode: Off}, or Kubernetes 1.34",
                                  "%.*s does not serve VolumeAttributesClasses in v1: no class "
                                  "counts as missing",
                                  SLICE_ARG(version->text)),
                      LEVEL_NOTE);
}
