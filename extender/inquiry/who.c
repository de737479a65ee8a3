#include "extender/inquiry/who.h"

#include <stdlib.h>

#include "extender/inquiry/who_internal.h"

enum { CLAIM_ARENA_BYTES_MAX = 256 << 20, SIMILAR_MAX = 3 };

/* An answer that is being made. */
struct who {
    const struct inquiry *inquiry;
    const struct who_question *question;
    const struct claim **waited; /* is_all: the claims that pods wait for, by their addresses */
    size_t waited_count;
    struct naming *namings; /* by claim */
    size_t naming_count;
    struct who_index index;
    struct arena arena; /* of one claim */
    json_t *claims;
};

/* ---- what is asked ---- */

static bool asks_for(const struct who_question *question, struct slice ns, struct slice name)
{
    if (question->is_all)
        return question->ns.len == 0 || slice_equal(question->ns, ns);
    for (size_t i = 0; i < question->count; i++)
        if (operand_is(&question->operands[i], ns, name))
            return true;
    return false;
}

static bool keeps(void *context, const struct object *object)
{
    const struct who_question *question = context;

    if (object->kind == KIND_CLAIM)
        return asks_for(question, object->meta.ns, object->meta.name);
    if (object->kind != KIND_POD)
        return object->kind == KIND_NODE || object->kind == KIND_VOLUME;
    for (size_t i = 0; i < object->pod.claim_count; i++)
        if (asks_for(question, object->meta.ns, object->pod.claims[i].name))
            return true;
    return false;
}

/* The namespace that all operands are in; empty: there are several. */
static struct slice only_namespace(const struct who_question *question)
{
    struct slice ns =
        question->is_all || question->count == 0 ? question->ns : question->operands[0].ns;

    for (size_t i = 1; i < question->count; i++)
        if (!slice_equal(question->operands[i].ns, ns))
            return SLICE("");
    return ns;
}

struct inquiry_wish who_wish(const struct who_question *question)
{
    return (struct inquiry_wish){
        .kinds = 1U << KIND_POD | 1U << KIND_NODE | 1U << KIND_CLAIM | 1U << KIND_VOLUME |
                 1U << KIND_CSI_DRIVER | 1U << KIND_POD_DISRUPTION_BUDGET |
                 1U << KIND_VOLUME_ATTACHMENT,
        .keeps_workloads = true,
        .reads_finished = !question->is_all, /* there may be many */
        .ns = only_namespace(question),
        .keeps = keeps,
        .context = (void *)(uintptr_t)question,
    };
}

/* ---- indexes ---- */

static int compare_claims(const void *a, const void *b)
{
    const struct naming *x = a, *y = b;
    int order = slice_compare(name_text(x->claim->ns), name_text(y->claim->ns));

    return order != 0 ? order : slice_compare(claim_name(x->claim), claim_name(y->claim));
}

static int compare_namings(const void *a, const void *b)
{
    const struct naming *x = a, *y = b;
    int order = compare_claims(a, b);

    return order != 0 ? order : slice_compare(pod_name(x->pod), pod_name(y->pod));
}

static int compare_addresses(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t) * (const struct claim *const *)a;
    uintptr_t y = (uintptr_t) * (const struct claim *const *)b;

    return (x > y) - (x < y);
}

/* A pod may wait for its claims until it has started: its volume may be on another node. */
static bool waits(const struct pod *pod)
{
    return !pod->is_terminal && (!pod_holds(pod) || pod->is_pending);
}

/* Makes room for one more item. NULL: no memory. */
static void *grow(void *items, size_t count, size_t size)
{
    bool is_full = count == 0 || (count & (count - 1)) == 0;

    return is_full ? realloc(items, (count == 0 ? 1 : count * 2) * size) : items;
}

/* Finds the claims that pods wait for, some of them twice. */
static bool find_waited(struct who *who)
{
    struct table_walk walk = {.at = 0};

    for (const struct pod *pod; (pod = cluster_next_pod(&who->inquiry->cluster, &walk)) != NULL;)
        for (size_t i = 0; waits(pod) && i < pod->use_count; i++) {
            const struct claim **grown =
                grow((void *)who->waited, who->waited_count, sizeof *who->waited);
            if (grown == NULL)
                return false;
            who->waited = grown;
            who->waited[who->waited_count++] = claim_at(pod->uses[i].claim);
        }
    if (who->waited_count != 0)
        qsort((void *)who->waited, who->waited_count, sizeof *who->waited, compare_addresses);
    return true;
}

/* Whether the answer has the claim, if pods name it. */
static bool is_answered(const struct who *who, const struct claim *claim)
{
    if (!asks_for(who->question, name_text(claim->ns), claim_name(claim)))
        return false;
    return !who->question->is_all ||
           (who->waited_count != 0 &&
            bsearch((const void *)&claim, (const void *)who->waited, who->waited_count,
                    sizeof *who->waited, compare_addresses) != NULL);
}

/* Finds each pod that names a claim in question. Those that have ended neither hold nor wait, and
 * may keep a claim from being deleted. */
static bool find_namings(struct who *who)
{
    struct table_walk walk = {.at = 0};

    for (const struct pod *pod; (pod = cluster_next_pod(&who->inquiry->cluster, &walk)) != NULL;)
        for (size_t i = 0; i < pod->use_count; i++) {
            const struct claim *claim = claim_at(pod->uses[i].claim);
            if (!is_answered(who, claim))
                continue;
            struct naming *grown = grow(who->namings, who->naming_count, sizeof *grown);
            if (grown == NULL)
                return false;
            who->namings = grown;
            who->namings[who->naming_count++] = (struct naming){claim, pod};
        }
    if (who->naming_count != 0)
        qsort(who->namings, who->naming_count, sizeof *who->namings, compare_namings);
    return true;
}

static int compare_attachments(const void *a, const void *b)
{
    const struct resource *const *x = a, *const *y = b;
    char first[PROVISIONED_NAME_BYTES], second[PROVISIONED_NAME_BYTES];
    int order = slice_compare(who_volume_of(*x), who_volume_of(*y));

    return order != 0 ? order : slice_compare(resource_name(*x, first), resource_name(*y, second));
}

bool who_index_attachments(struct who_index *index, const struct cluster *cluster)
{
    struct table_walk walk = {.at = 0};

    index->attachments =
        calloc(cluster->counts[KIND_VOLUME_ATTACHMENT] + 1, sizeof *index->attachments);
    if (index->attachments == NULL)
        return false;
    for (const struct resource *attachment;
         (attachment = cluster_next_resource(cluster, KIND_VOLUME_ATTACHMENT, &walk)) != NULL;)
        index->attachments[index->attachment_count++] = attachment;
    qsort((void *)index->attachments, index->attachment_count, sizeof *index->attachments,
          compare_attachments);
    return true;
}

/* ---- the answer ---- */

/* False: no memory. */
static bool add_claim(struct who *who, const struct claim *claim, const struct naming *namings,
                      size_t count)
{
    struct who_claim gathered = {.inquiry = who->inquiry, .arena = &who->arena};

    arena_reset(&who->arena);
    inquiry_forget_details(who->inquiry);
    if (!who_gather(&gathered, &who->index, claim, namings, count))
        return false;
    if (who->question->is_all && !gathered.is_waited_for)
        return true;
    return json_array_append_new(who->claims, who_describe(&gathered)) == 0;
}

static void mark_found(const struct who *who, const struct claim *claim, bool *found)
{
    for (size_t i = 0; i < who->question->count; i++)
        if (operand_is(&who->question->operands[i], name_text(claim->ns), claim_name(claim)))
            found[i] = true;
}

/* The claims that pods name. */
static bool add_named(struct who *who, bool *found)
{
    for (size_t begin = 0, end; begin < who->naming_count; begin = end) {
        const struct claim *claim = who->namings[begin].claim;
        for (end = begin; end < who->naming_count && who->namings[end].claim == claim;)
            end++;
        mark_found(who, claim, found);
        if (!add_claim(who, claim, who->namings + begin, end - begin))
            return false;
    }
    return true;
}

static bool is_named(const struct who *who, const struct claim *claim)
{
    const struct naming key = {.claim = claim};

    return who->naming_count != 0 && bsearch(&key, who->namings, who->naming_count,
                                             sizeof *who->namings, compare_claims) != NULL;
}

/* The claims that no pod names, of those that are asked for. */
static bool add_unnamed(struct who *who, bool *found)
{
    struct table_walk walk = {.at = 0};

    if (who->question->is_all)
        return true;
    for (const struct claim *claim;
         (claim = cluster_next_claim(&who->inquiry->cluster, &walk)) != NULL;) {
        if (!claim->exists || !asks_for(who->question, name_text(claim->ns), claim_name(claim)) ||
            is_named(who, claim))
            continue;
        mark_found(who, claim, found);
        if (!add_claim(who, claim, NULL, 0))
            return false;
    }
    return true;
}

/* ---- order ---- */

static int compare_names(const json_t *x, const json_t *y)
{
    int order = strcmp(value_string(x, "namespace"), value_string(y, "namespace"));

    return order != 0 ? order : strcmp(value_string(x, "name"), value_string(y, "name"));
}

static int by_name(const void *a, const void *b)
{
    return compare_names(*(json_t *const *)a, *(json_t *const *)b);
}

static const char *longest_since(const json_t *claim)
{
    return value_string(json_array_get(json_object_get(claim, "waiting"), 0), "since");
}

/* Longest wait first; a time that is not known last. */
static int by_wait(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    const char *since = longest_since(x), *other = longest_since(y);
    int order = strcmp(since, other);

    if ((*since == '\0') != (*other == '\0'))
        return *since == '\0' ? 1 : -1;
    return order != 0 ? order : compare_names(x, y);
}

/* A sorted list of the claims, which are freed; NULL: no memory. */
static json_t *sort_claims(json_t *claims, bool is_all)
{
    size_t count = json_array_size(claims);
    json_t **items = calloc(count + 1, sizeof(json_t *));
    json_t *sorted = items == NULL ? NULL : json_array();
    int rc = sorted == NULL ? -1 : 0;

    for (size_t i = 0; items != NULL && i < count; i++)
        items[i] = json_array_get(claims, i);
    if (items != NULL)
        qsort((void *)items, count, sizeof(json_t *), is_all ? by_wait : by_name);
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = json_array_append(sorted, items[i]);
    free((void *)items);
    json_decref(claims);
    return value_whole(sorted, rc);
}

json_t *who_answer(const struct inquiry *inquiry, const struct who_question *question, bool *found)
{
    struct who who = {.inquiry = inquiry, .question = question, .claims = json_array()};
    json_t *answer = json_object();

    workloads_forget(inquiry->workloads);
    arena_init(&who.arena, CLAIM_ARENA_BYTES_MAX);
    bool is_whole = who.claims != NULL && (!question->is_all || find_waited(&who)) &&
                    find_namings(&who) && who_index_attachments(&who.index, &inquiry->cluster) &&
                    add_named(&who, found) && add_unnamed(&who, found);
    arena_dispose(&who.arena);
    free((void *)who.waited);
    free(who.namings);
    free((void *)who.index.attachments);
    json_t *gaps = who_gaps(inquiry, who.claims);
    int rc = value_put(answer, "claims", sort_claims(who.claims, question->is_all)) |
             value_put(answer, "notKnown", gaps);
    return value_whole(answer, is_whole ? rc : -1);
}

void who_similar(const struct inquiry *inquiry, const struct operand *operand, struct buf *out)
{
    struct table_walk walk = {.at = 0};
    int count = 0;

    for (const struct claim *claim;
         count < SIMILAR_MAX && (claim = cluster_next_claim(&inquiry->cluster, &walk)) != NULL;)
        if (claim->exists && slice_equal(claim_name(claim), operand->name))
            buf_printf(out, "%s%.*s/%.*s", count++ == 0 ? "" : ", ",
                       SLICE_ARG(name_text(claim->ns)), SLICE_ARG(claim_name(claim)));
}
