#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "extender/serving/bind/bind.h"
#include "simulation/world.h"

static struct server *const server = &world.server;

/* ---- objects as text ---- */

static void write_annotation(const struct sim_pod *pod, struct buf *out)
{
    const char *separator = "";

    buf_printf(out, ",\"annotations\":{\"claimguard.io/fenced\":\"%s\"", pod->fenced);
    if (pod->deferred_for[0] != '\0')
        buf_printf(out, ",\"claimguard.io/deferred-for\":\"%s\"", pod->deferred_for);
    if (pod->annotated == 0 && !pod->opts_out) {
        buf_printf(out, "}");
        return;
    }
    buf_printf(out, ",\"claimguard.io/defer-fs-mount\":\"%s", pod->opts_out ? "disabled" : "");
    for (unsigned i = 0; i < CLAIMS; i++)
        if ((pod->annotated >> i & 1) != 0) {
            buf_printf(out, "%sv%u", separator, i);
            separator = ",";
        }
    buf_printf(out, "\"}");
}

/* An older API server does not see the field that a newer one has stored. Of pods that are bound it
 * does here: what claimguard knows of those by the field alone, it forgets when it restarts. */
unsigned server_shown_fields(const struct sim_pod *pod)
{
    return world.field == FIELD_ABSENT && pod->node < 0 ? 0 : pod->fields;
}

unsigned server_deferred_claims(const struct sim_pod *pod)
{
    return pod->annotated | pod->fields;
}

void server_write_pod(const struct sim_pod *pod, struct buf *out)
{
    bool is_first = true;

    buf_printf(
        out,
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\",\"namespace\":"
        "\"ns\",\"uid\":\"%s\",\"resourceVersion\":\"%llu\",\"labels\":{\"app\":\"%s\"}",
        pod->name, pod->uid, (unsigned long long)pod->version,
        pod->is_protected ? "protected" : "other");
    write_annotation(pod, out);
    if (pod->is_terminating)
        buf_printf(out, ",\"deletionTimestamp\":\"2026-11-20T19:37:44Z\"");
    buf_printf(out, "},\"spec\":{\"priority\":%d", pod->priority);
    if (pod->never)
        buf_printf(out, ",\"preemptionPolicy\":\"Never\"");
    if (pod->is_grouped)
        buf_printf(out, ",\"schedulingGroup\":{\"podGroupName\":\"gang\"}");
    if (pod->node >= 0)
        buf_printf(out, ",\"nodeName\":\"node-%d\"", pod->node);
    if (pod->is_vm)
        buf_printf(out, ",\"runtimeClassName\":\"microvm\"");
    buf_printf(out, ",\"volumes\":[");
    for (unsigned i = 0; i < CLAIMS; i++)
        if ((pod->claims >> i & 1) != 0) {
            buf_printf(out, "%s{\"name\":\"v%u\",", is_first ? "" : ",", i);
            if ((pod->ephemeral >> i & 1) != 0)
                buf_printf(out, "\"ephemeral\":{\"volumeClaimTemplate\":{\"spec\":{}}}}");
            else
                buf_printf(out, "\"persistentVolumeClaim\":{\"claimName\":\"%s\"%s}}",
                           server->claims[i].name,
                           (server_shown_fields(pod) >> i & 1) != 0 ? ",\"deferFSMount\":true"
                                                                    : "");
            is_first = false;
        }
    buf_printf(out, "]},\"status\":{\"phase\":\"%s\"",
               pod->is_finished                ? "Succeeded"
               : pod->exists && pod->node >= 0 ? "Running"
                                               : "Pending");
    if (pod->nominated >= 0)
        buf_printf(out, ",\"nominatedNodeName\":\"node-%d\"", pod->nominated);
    buf_printf(out, "}}");
}

void server_write_claim(const struct sim_claim *claim, struct buf *out)
{
    buf_printf(out,
               "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"name\":"
               "\"%s\",\"namespace\":\"ns\",\"uid\":\"%s\",\"resourceVersion\":\"%llu\"",
               claim->name, claim->uid, (unsigned long long)claim->version);
    if (claim->owner != NULL)
        buf_printf(out,
                   ",\"ownerReferences\":[{\"kind\":\"Pod\",\"name\":\"%s\",\"uid\":\"%s\","
                   "\"controller\":true}]",
                   claim->owner->name, claim->owner->uid);
    if (claim->holder[0] != '\0')
        buf_printf(out,
                   ",\"annotations\":{\"claimguard.io/holder\":\"%s\","
                   "\"claimguard.io/locked-at\":\"%s\",\"claimguard.io/admitted\":\"%s\"}",
                   claim->holder, claim->locked_at, claim->admitted);
    buf_printf(out, "},\"spec\":{\"accessModes\":[\"%s\"],\"storageClassName\":\"%s\"",
               claim->is_rwop          ? "ReadWriteOncePod"
               : world.is_for_one_node ? "ReadWriteOnce"
                                       : "ReadWriteMany",
               claim->is_slow ? "slow-storage" : "fast-storage");
    if (!claim->is_unbound)
        buf_printf(out, ",\"volumeName\":\"pv-%s\"", claim->name);
    buf_printf(out, "},\"status\":{\"phase\":\"%s\"}}", claim->is_unbound ? "Pending" : "Bound");
}

static void write_volume(const struct sim_claim *claim, struct buf *out)
{
    buf_printf(out,
               "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolume\",\"metadata\":{\"name\":"
               "\"pv-%s\",\"resourceVersion\":\"1\"},\"spec\":{\"accessModes\":[\"%s\"],\"csi\":{"
               "\"driver\":"
               "\"plugin1.example.com\"},\"claimRef\":{\"namespace\":\"ns\",\"name\":\"%s\"}}}",
               claim->name, world.is_for_one_node ? "ReadWriteOnce" : "ReadWriteMany", claim->name);
}

static void write_node(size_t index, struct buf *out)
{
    buf_printf(out,
               "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"node-%zu\","
               "\"uid\":\"00000000-0000-4000-8001-%012zu\",\"resourceVersion\":\"1\"}}",
               index, index);
}

static void write_budget(struct buf *out)
{
    buf_printf(out,
               "{\"apiVersion\":\"policy/v1\",\"kind\":\"PodDisruptionBudget\",\"metadata\":{"
               "\"name\":\"b\",\"namespace\":\"ns\",\"uid\":\"b\",\"resourceVersion\":\"%llu\"},"
               "\"spec\":{\"selector\":{\"matchLabels\":{\"app\":\"protected\"}}},\"status\":{"
               "\"disruptionsAllowed\":%lld}}",
               (unsigned long long)server->version, (long long)server->disruptions_allowed);
}

/* ---- the log ---- */

static void append(enum kind kind, enum watch_change change, int pod, struct buf *text)
{
    const char *written = buf_text(text);

    if (server->log_count == LOG_MAX || written == NULL) {
        broken("the log is full");
        return;
    }
    server->log[server->log_count] =
        (struct log_entry){kind, change, server->version, pod, strdup(written)};
    size_t index = server->log_count++;
    for (unsigned i = 0; i < world.replica_count; i++)
        replica_notified(&world.replicas[i], index);
    for (unsigned i = 0; i < world.scheduler_count; i++)
        scheduler_notified(&world.schedulers[i], index);
}

/* The pod has changed, by a write of the API server as it is now. A pod that has finished is gone
 * for those that watch the others. */
void server_publish(struct sim_pod *pod)
{
    struct buf text;

    pod->version = ++server->version;
    pod->fields = server_shown_fields(pod);
    buf_init(&text, 1 << 16);
    server_write_pod(pod, &text);
    append(KIND_POD, pod_is_there(pod) ? CHANGE_PUT : CHANGE_DELETE, (int)(pod - server->pods),
           &text);
    buf_dispose(&text);
}

void server_publish_claim(struct sim_claim *claim)
{
    struct buf text;

    claim->version = ++server->version;
    buf_init(&text, 1 << 16);
    server_write_claim(claim, &text);
    append(KIND_CLAIM, claim->is_absent ? CHANGE_DELETE : CHANGE_PUT, -1, &text);
    buf_dispose(&text);
}

/* ---- what users, kubelets and schedulers do ---- */

bool pod_is_there(const struct sim_pod *pod)
{
    return pod->exists && !pod->is_finished;
}

void server_init(void)
{
    for (unsigned i = 0; i < CLAIMS; i++) {
        struct sim_claim *claim = &server->claims[i];
        (void)snprintf(claim->name, sizeof claim->name, "c%u", i);
        claim->is_rwop =
            i < (world.is_for_one_node || world.is_mixed ? 1 : CLAIMS - 1) || one_in(2);
        if (!world.has_ephemeral || i != CLAIMS - 1) {
            server_create_claim(i);
            continue;
        }
        (void)snprintf(claim->name, sizeof claim->name, EPHEMERAL_OWNER "-v%u", i);
        claim->is_rwop = claim->is_absent = true;
    }
    server_set_budget((int64_t)below(2));
}

void server_dispose(void)
{
    for (size_t i = 0; i < server->log_count; i++)
        free(server->log[i].text);
}

struct sim_pod *server_find_pod(const char *name, size_t len)
{
    for (size_t i = server->pod_count; i-- > 0;)
        if (server->pods[i].exists && strlen(server->pods[i].name) == len &&
            memcmp(server->pods[i].name, name, len) == 0)
            return &server->pods[i];
    return NULL;
}

struct sim_pod *server_pod_of(const char *uid, size_t len)
{
    for (size_t i = server->pod_count; i-- > 0;)
        if (strlen(server->pods[i].uid) == len && memcmp(server->pods[i].uid, uid, len) == 0)
            return &server->pods[i];
    return NULL;
}

void server_change_claim(unsigned claim, bool is_rwop, bool is_unbound)
{
    server->claims[claim].is_rwop = is_rwop;
    server->claims[claim].is_unbound = is_unbound;
    server_publish_claim(&server->claims[claim]);
}

void server_remove_claim(unsigned index)
{
    server->claims[index].is_absent = true;
    server->claims[index].removed_ns = world.now_ns;
    trace("claim c%u is gone", index);
    server_publish_claim(&server->claims[index]);
}

void server_create_claim(unsigned index)
{
    struct sim_claim *claim = &server->claims[index];

    claim->is_absent = false;
    claim->created_ns = world.now_ns;
    claim->holder[0] = claim->locked_at[0] = claim->admitted[0] = '\0';
    (void)snprintf(claim->uid, sizeof claim->uid, "00000000-0000-4000-9000-%06x%06x",
                   ++claim->lives, index + 1);
    trace("claim c%u is created%s%s", index, claim->is_rwop ? "" : ", to be shared",
          claim->is_slow ? ", of another class" : "");
    server_publish_claim(claim);
}

struct sim_pod *server_name_pod(const char *name, const struct sim_pod *properties, int node)
{
    struct sim_pod *pod = &server->pods[server->pod_count];

    if (server->pod_count == PODS_MAX) {
        broken("too many pods");
        return NULL;
    }
    *pod = *properties;
    pod->node = node;
    pod->nominated = -1;
    (void)snprintf(pod->name, sizeof pod->name, "%s", name);
    (void)snprintf(pod->uid, sizeof pod->uid, "00000000-0000-4000-8000-%012zx",
                   server->pod_count + 1);
    server->pod_count++;
    return pod;
}

/* ---- generic ephemeral volumes ---- */

/* Kubernetes keeps a claim for as long as a pod on a node uses it. */
bool server_is_used(unsigned claim)
{
    for (size_t i = 0; i < server->pod_count; i++)
        if (pod_is_there(&server->pods[i]) && server->pods[i].node >= 0 &&
            (server->pods[i].claims >> claim & 1) != 0)
            return true;
    return false;
}

/* The controller that creates the claim of a pod, when no earlier one has its name. */
static void create_owned(void *context)
{
    const struct sim_pod *pod = context;
    struct sim_claim *claim = &server->claims[CLAIMS - 1];

    if (world.is_over || !pod->exists || claim->owner == pod)
        return;
    if (claim->is_absent) {
        claim->owner = pod;
        server_create_claim(CLAIMS - 1);
    } else {
        later(SECOND, false, create_owned, context);
    }
}

/* The garbage collector. */
static void remove_owned(void *context)
{
    struct sim_claim *claim = &server->claims[CLAIMS - 1];

    if (world.is_over || claim->owner != context || claim->is_absent)
        return;
    if (server_is_used(CLAIMS - 1)) {
        later(SECOND, false, remove_owned, context);
        return;
    }
    claim->owner = NULL;
    server_remove_claim(CLAIMS - 1);
}

void server_store_pod(struct sim_pod *pod)
{
    pod->exists = true;
    pod->created_ns = world.now_ns;
    trace("pod %s (%s) priority %d claims %u node %d%s%s", pod->name, pod->uid + 24, pod->priority,
          pod->claims, pod->node, pod->is_vm ? ", a VM" : "",
          pod->opts_out ? " that opts out" : "");
    server_publish(pod);
    if (pod->ephemeral != 0)
        later(below(2 * SECOND), true, create_owned, pod);
}

struct sim_pod *server_create_pod(const char *name, const struct sim_pod *properties)
{
    struct sim_pod *pod = server_name_pod(name, properties, -1);

    if (pod != NULL)
        server_store_pod(pod);
    return pod;
}

static void mark_deleted(struct sim_pod *pod)
{
    pod->exists = false;
    if (pod->gone_ns == 0) /* else it has finished before */
        pod->gone_ns = world.now_ns;
    trace("pod %s (%s) is gone", pod->name, pod->uid + 24);
    server_publish(pod);
    if (pod->ephemeral != 0)
        later(below(2 * SECOND), true, remove_owned, pod);
}

static void end_termination(void *context)
{
    struct sim_pod *pod = context;

    if (pod->exists)
        mark_deleted(pod);
}

void server_terminate(struct sim_pod *pod, uint64_t grace_ns)
{
    if (!pod->exists || pod->is_terminating)
        return;
    if (pod->node < 0 || pod->is_finished) {
        mark_deleted(pod);
        return;
    }
    trace("pod %s (%s) terminates", pod->name, pod->uid + 24);
    pod->is_terminating = true;
    server_publish(pod);
    later(grace_ns, true, end_termination, pod);
}

uint64_t termination_ns(unsigned most_seconds)
{
    return (world.termination_seconds != 0 ? world.termination_seconds : below(most_seconds)) *
           SECOND;
}

void server_finish(struct sim_pod *pod)
{
    if (!pod_is_there(pod) || pod->node < 0)
        return;
    trace("pod %s (%s) has finished", pod->name, pod->uid + 24);
    pod->is_finished = true;
    pod->gone_ns = world.now_ns;
    server_publish(pod);
}

void server_touch(struct sim_pod *pod)
{
    if (pod_is_there(pod))
        server_publish(pod);
}

void server_replace(enum field_support field)
{
    static const char *const texts[] = {"does not know", "drops", "knows"};

    trace("from now on the API server %s the field", texts[field]);
    world.field = field;
    world.field_since_ns = world.now_ns;
    for (unsigned i = 0; i < world.replica_count; i++)
        if (world.replicas[i].is_up) /* its connections were lost */
            atomic_fetch_add(&world.replicas[i].state.status[KIND_POD].restarts[RESTART_CONNECTION],
                             1);
}

void server_set_budget(int64_t allowed)
{
    struct buf text;

    server->disruptions_allowed = allowed;
    server->version++;
    buf_init(&text, 1 << 16);
    write_budget(&text);
    append(KIND_POD_DISRUPTION_BUDGET, CHANGE_PUT, -1, &text);
    buf_dispose(&text);
}

void server_list(enum kind kind, void (*put)(void *context, enum kind kind, struct slice text),
                 void *context)
{
    struct buf text;
    size_t count = kind == KIND_POD                     ? server->pod_count
                   : kind == KIND_CLAIM                 ? CLAIMS
                   : kind == KIND_VOLUME                ? CLAIMS
                   : kind == KIND_NODE                  ? NODES
                   : kind == KIND_POD_DISRUPTION_BUDGET ? 1
                                                        : 0;

    buf_init(&text, 1 << 16);
    for (size_t i = 0; i < count; i++) {
        buf_reset(&text, 1 << 16);
        if (kind == KIND_CLAIM && !server->claims[i].is_absent)
            server_write_claim(&server->claims[i], &text);
        else if (kind == KIND_VOLUME)
            write_volume(&server->claims[i], &text);
        else if (kind == KIND_NODE)
            write_node(i, &text);
        else if (kind == KIND_POD_DISRUPTION_BUDGET)
            write_budget(&text);
        else if (kind == KIND_POD && pod_is_there(&server->pods[i]))
            server_write_pod(&server->pods[i], &text);
        if (text.len != 0)
            put(context, kind, buf_slice(&text));
    }
    buf_dispose(&text);
}
