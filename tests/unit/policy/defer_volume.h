/*
 * A claim `data` with its volume, and a pod `web-0` that mounts it: what a test does not say is
 * such that all rules of DeferFSMount hold. Included by the tests of defer_fs_mount.
 */
#ifndef TESTS_UNIT_POLICY_DEFER_VOLUME_H
#define TESTS_UNIT_POLICY_DEFER_VOLUME_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "policy/defer_fs_mount.h"
#include "support/load.h"

/* What differs from a volume of which all rules hold; NULL: nothing does. */
struct row {
    const char *reason;   /* NULL: deferred */
    const char *entries;  /* YAML */
    const char *claim;    /* its spec and status */
    const char *volume;   /* the PersistentVolume's spec, with its claimRef */
    const char *source;   /* the pod's volume `data`, but for its name */
    const char *security; /* the pod's securityContext */
    const char *mount;    /* what the container says of `data` beside its name */
    const char *pod;      /* more of the pod's spec */
    const char *metadata; /* more of the pod's metadata */
    const char *apply;
};

#define ENTRY_BEGIN "{storageClass: fast-storage, runtimeClass: microvm"
#define SUPPORTS_ALL \
    ENTRY_BEGIN ", postMountConfig: {fsGroup: true, fsGroupChangePolicies: " \
                "[Always, OnRootMismatch], subPath: true, seLinuxRelabel: true}}"
#define CLAIM(modes_, more_) \
    "\"spec\":{\"storageClassName\":\"fast-storage\",\"volumeName\":\"pv-1\",\"accessModes\":[" \
    "\"" modes_ "\"]" more_ "},\"status\":{\"phase\":\"Bound\"}"
#define PV(source_) "\"claimRef\":{\"namespace\":\"default\",\"name\":\"data\"}," source_
#define CSI         "\"csi\":{\"driver\":\"plugin1.example.com\",\"fsType\":\"ext4\"}"

static inline const char *or_else(const char *text, const char *preset)
{
    return text == NULL ? preset : text;
}

static inline struct config *load_config(const char *apply, const char *entries)
{
    char path[] = "/tmp/defer-XXXXXX", text[4096];
    struct config *config;
    struct error err = {0};
    int fd = mkstemp(path);

    (void)snprintf(text, sizeof text,
                   "apiVersion: claimguard.io/v1alpha1\nkind: ClaimguardConfiguration\n"
                   "deferFSMount: {apply: %s, entries: [%s]}\n"
                   /* what is deferred, and who shares it, without the other policies */
                   "readWriteOnce: {mode: Off}\ncsiVolumes: {mode: Off}\n"
                   "volumeAttributesClasses: {mode: Off}\n",
                   apply, entries);
    cr_assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    (void)close(fd);
    cr_assert_eq(config_load(&config, path, &err), 0, "%s", err.message);
    (void)unlink(path);
    return config;
}

static inline void load_volume(struct cluster *cluster, const struct row *row)
{
    char text[4096];

    (void)snprintf(
        text, sizeof text,
        "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[{\"apiVersion\":\"v1\",\"kind\":"
        "\"PersistentVolumeClaim\",\"metadata\":{\"name\":\"data\",\"uid\":\"c\"},%s},"
        "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolume\",\"metadata\":{\"name\":\"pv-1\"},"
        "\"spec\":{%s}}]}",
        or_else(row->claim, CLAIM("ReadWriteOncePod", "")), or_else(row->volume, PV(CSI)));
    load_text(cluster, text);
}

static inline struct pod_object read_pod(const struct row *row, struct arena *arena, char *text,
                                         size_t size)
{
    struct pod_object pod;
    struct pull json;

    (void)snprintf(text, size,
                   "{\"metadata\":{\"name\":\"web-0\",\"uid\":\"u\"%s},\"spec\":{\"volumes\":[{"
                   "\"name\":\"other\",\"emptyDir\":{}},{\"name\":\"data\",%s}],\"containers\":[{"
                   "\"name\":\"c\",\"volumeMounts\":[{\"name\":\"other\",\"subPath\":\"x\"},{"
                   "\"name\":\"data\"%s}]}],\"securityContext\":{%s}%s}}",
                   or_else(row->metadata, ""),
                   or_else(row->source, "\"persistentVolumeClaim\":{\"claimName\":\"data\"}"),
                   or_else(row->mount, ""), or_else(row->security, ""),
                   or_else(row->pod, ",\"runtimeClassName\":\"microvm\""));
    pull_init(&json, slice_of(text));
    cr_assert(pod_read(&json, arena, &pod), "%s: %s", text, json.problem);
    return pod;
}

#endif
