/* Scaling a controller, so that a pod of it ends and is not created again. */
#include "extender/inquiry/who_advice.h"

enum { DIGITS_MAX = 9, LISTED_CLAIMS_MAX = 10, LIST_BYTES_MAX = 16 * 1024 };

int64_t scaling_ordinal(const struct scaling *scaling)
{
    struct slice name = pod_name(scaling->holder->pod), set = scaling->holder->owner.name;
    size_t begin = set.len + 1;
    int64_t ordinal = 0;

    if (name.len <= begin || name.len > begin + DIGITS_MAX ||
        !slice_equal((struct slice){name.ptr, set.len}, set) || name.ptr[set.len] != '-')
        return -1;
    for (size_t i = begin; i < name.len; i++) {
        if (name.ptr[i] < '0' || name.ptr[i] > '9')
            return -1;
        ordinal = ordinal * 10 + (name.ptr[i] - '0');
    }
    return ordinal;
}

void scaling_command(const struct scaling *scaling, int64_t replicas)
{
    const struct owner *owner = &scaling->holder->owner;
    struct slice number = arena_printf(scaling->claim->arena, "%lld", (long long)replicas);

    if (number.ptr == NULL)
        scaling->advice->rc = -1;
    else
        advice_command(scaling->advice, "kubectl scale -n % % % --replicas=%",
                       (const struct slice[]){name_text(scaling->holder->pod->ns),
                                              slice_of(scaling->resource), owner->name, number});
}

static void advise_scaling_back(const struct scaling *scaling)
{
    const struct owner *owner = &scaling->holder->owner;
    int64_t replicas = scaling->workload->details.replicas;

    advice_add(scaling->advice,
               json_sprintf("when the claim may be taken again, scale %.*s %.*s back to %lld",
                            OWNER_ARG(owner), (long long)replicas));
    scaling_command(scaling, replicas);
}

/* Nothing that may destroy something is proposed blindly. */
static void advise_look(const struct scaling *scaling)
{
    const struct owner *owner = &scaling->holder->owner;
    const struct slice words[] = {name_text(scaling->holder->pod->ns), slice_of(scaling->resource),
                                  owner->name};
    bool is_stateful = owner_is_kind(owner, SLICE("StatefulSet"));

    advice_add(scaling->advice,
               json_sprintf("%.*s %.*s has to be scaled down, since it creates a pod that is only "
                            "deleted again. How many pods that stops%s is not known from this "
                            "input: see it first",
                            OWNER_ARG(owner),
                            is_stateful ? ", and whether it deletes their claims "
                                          "(persistentVolumeClaimRetentionPolicy.whenScaled),"
                                        : ""));
    advice_command(scaling->advice, "kubectl get -n % % % -o yaml", words);
    advice_warn_of_loss(scaling->advice, scaling->claim, scaling->holder);
}

/* ---- StatefulSet ---- */

/* The claims of the pods first to last, of which a few are listed. */
static json_t *list_claims(const struct scaling *scaling, int64_t first, int64_t last)
{
    const struct pull_items *items = &scaling->workload->details.claim_templates;
    const struct claim_template *templates = items->items;
    struct slice set = scaling->holder->owner.name;
    struct buf list;
    int listed = 0;

    buf_init(&list, LIST_BYTES_MAX);
    for (int64_t ordinal = first; ordinal <= last && listed <= LISTED_CLAIMS_MAX; ordinal++)
        for (size_t i = 0; i < items->count && listed <= LISTED_CLAIMS_MAX; i++)
            if (++listed > LISTED_CLAIMS_MAX)
                buf_put(&list, SLICE(", ..."));
            else
                buf_printf(&list, "%s%.*s-%.*s-%lld", listed == 1 ? "" : ", ",
                           SLICE_ARG(templates[i].name), SLICE_ARG(set), (long long)ordinal);
    json_t *text = list.failed ? NULL : value_text(buf_slice(&list));
    buf_dispose(&list);
    return text;
}

/* With whenScaled: Delete, it would destroy claims. */
static void advise_retention(const struct scaling *scaling, int64_t first, int64_t last)
{
    struct slice ns = name_text(scaling->holder->pod->ns), name = scaling->holder->owner.name;
    json_t *claims = list_claims(scaling, first, last);

    advice_add(scaling->advice,
               claims == NULL
                   ? NULL
                   : json_sprintf("first keep the claims: as StatefulSet %.*s has whenScaled: "
                                  "Delete, to scale it deletes %s",
                                  SLICE_ARG(name), json_string_value(claims)));
    json_decref(claims);
    advice_command(scaling->advice,
                   "kubectl patch statefulset -n % % --type merge -p "
                   "'{\"spec\":{\"persistentVolumeClaimRetentionPolicy\":{\"whenScaled\":"
                   "\"Retain\"}}}'",
                   (const struct slice[]){ns, name});
}

static void advise_stateful(const struct scaling *scaling)
{
    const struct workload_details *set = &scaling->workload->details;
    struct slice name = scaling->holder->owner.name;
    int64_t ordinal = scaling_ordinal(scaling), last = set->first_ordinal + set->replicas - 1;
    bool destroys =
        slice_equal(set->when_scaled, SLICE("Delete")) && set->claim_templates.count != 0;

    if (ordinal < set->first_ordinal || ordinal > last) {
        advice_add(scaling->advice, json_sprintf("StatefulSet %.*s is scaled to %lld: it removes "
                                                 "pod %.*s/%.*s",
                                                 SLICE_ARG(name), (long long)set->replicas,
                                                 POD_ARG(scaling->holder->pod)));
        advice_warn_of_loss(scaling->advice, scaling->claim, scaling->holder);
        return;
    }
    if (destroys)
        advise_retention(scaling, ordinal, last);
    advice_add(scaling->advice,
               json_sprintf("scale StatefulSet %.*s from %lld to %lld (it creates a pod that is "
                            "only deleted again)",
                            SLICE_ARG(name), (long long)set->replicas,
                            (long long)(ordinal - set->first_ordinal)));
    scaling_command(scaling, ordinal - set->first_ordinal);
    advice_warn(scaling->advice,
                ordinal == last
                    ? json_sprintf("it stops pod %.*s-%lld", SLICE_ARG(name), (long long)last)
                    : json_sprintf("it stops pods %.*s-%lld to %.*s-%lld", SLICE_ARG(name),
                                   (long long)ordinal, SLICE_ARG(name), (long long)last));
    if (destroys)
        advice_warn(scaling->advice,
                    json_string("without the command above, it deletes the claims of these pods"));
    advice_warn_of_loss(scaling->advice, scaling->claim, scaling->holder);
    advise_scaling_back(scaling);
}

/* ---- Deployment, ReplicaSet, ReplicationController ---- */

static void advise_stateless(const struct scaling *scaling)
{
    const struct owner *owner = &scaling->holder->owner;
    int64_t replicas = scaling->workload->details.replicas;

    if (replicas == 0) {
        advice_add(scaling->advice,
                   json_sprintf("%.*s %.*s is scaled to 0: it removes pod %.*s/%.*s",
                                OWNER_ARG(owner), POD_ARG(scaling->holder->pod)));
        advice_warn_of_loss(scaling->advice, scaling->claim, scaling->holder);
        return;
    }
    advice_add(scaling->advice, json_sprintf("scale %.*s %.*s from %lld to 0 (it creates another "
                                             "pod for one that is only deleted)",
                                             OWNER_ARG(owner), (long long)replicas));
    scaling_command(scaling, 0);
    advice_warn(scaling->advice, json_sprintf("it stops all pods of %.*s %.*s (%lld)",
                                              OWNER_ARG(owner), (long long)replicas));
    advice_warn_of_loss(scaling->advice, scaling->claim, scaling->holder);
    advise_scaling_back(scaling);
}

void advice_to_scale(const struct scaling *scaling)
{
    if (scaling->workload->state == WORKLOAD_GONE)
        advice_add(scaling->advice,
                   json_sprintf("%.*s %.*s does not exist any more: kube-controller-manager "
                                "deletes pod %.*s/%.*s",
                                OWNER_ARG(&scaling->holder->owner), POD_ARG(scaling->holder->pod)));
    else if (!scaling_is_known(scaling))
        advise_look(scaling);
    else if (owner_is_kind(&scaling->holder->owner, SLICE("StatefulSet")))
        advise_stateful(scaling);
    else
        advise_stateless(scaling);
}
