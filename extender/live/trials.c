#include "extender/live/trials.h"

#include <string.h>

#include "config/base/clock.h"

void trials_init(struct trials *trials)
{
    memset(trials->slots, 0, sizeof trials->slots);
    (void)pthread_mutex_init(&trials->lock, NULL);
}

void trials_dispose(struct trials *trials)
{
    (void)pthread_mutex_destroy(&trials->lock);
}

/* ---- hashes of 64 bits ---- */

static uint64_t add(uint64_t hash, struct slice text)
{
    uint64_t low = table_hash(text, (uint32_t)hash),
             high = table_hash(text, ~(uint32_t)(hash >> 32));

    return high << 32 | low;
}

static uint64_t hash_pod(const struct meta *pod)
{
    return add(add(add(0, pod->ns), pod->name), pod->uid);
}

static uint64_t hash_causes(const struct verdict *verdict)
{
    uint64_t hash = verdict->cause_count;

    for (size_t i = 0; i < verdict->cause_count; i++) {
        const struct object_reference *cause = &verdict->causes[i];
        hash = add(add(add(hash + cause->kind, cause->ns), cause->name), cause->uid);
    }
    return hash;
}

/* ---- slots ---- */

/* The pod's slot, which is another pod's no more. Under the lock. */
static struct trial *slot_of(struct trials *trials, const struct meta *pod)
{
    uint64_t hash = hash_pod(pod);
    struct trial *trial = &trials->slots[hash % TRIAL_SLOTS];

    if (trial->pod != hash)
        *trial = (struct trial){.pod = hash};
    return trial;
}

bool trials_recall(struct trials *trials, const struct meta *pod, const struct verdict *verdict,
                   enum confirmation *confirmation)
{
    uint64_t causes = hash_causes(verdict), now_ns = monotonic_ns();

    (void)pthread_mutex_lock(&trials->lock);
    const struct trial *trial = slot_of(trials, pod);
    bool is_known = trial->confirmed_ns != 0 && trial->causes == causes &&
                    now_ns < trial->confirmed_ns + TRIAL_CONFIRMED_MS * NS_PER_MS;
    *confirmation = trial->confirmation;
    (void)pthread_mutex_unlock(&trials->lock);
    return is_known;
}

void trials_note(struct trials *trials, const struct meta *pod, const struct verdict *verdict,
                 enum confirmation confirmation)
{
    uint64_t causes = hash_causes(verdict), now_ns = monotonic_ns();

    (void)pthread_mutex_lock(&trials->lock);
    struct trial *trial = slot_of(trials, pod);
    trial->causes = causes;
    trial->confirmed_ns = now_ns;
    trial->confirmation = confirmation;
    (void)pthread_mutex_unlock(&trials->lock);
}

uint64_t trials_reserve_until(struct trials *trials, const struct meta *pod, uint64_t ttl_ns)
{
    const uint64_t lead_ns = TRIAL_LEAD_MS * NS_PER_MS, pause_ns = TRIAL_PAUSE_MS * NS_PER_MS;
    uint64_t now_ns = monotonic_ns(), until_ns = 0;

    (void)pthread_mutex_lock(&trials->lock);
    struct trial *trial = slot_of(trials, pod);
    if (trial->reserved_ns == 0 || now_ns >= trial->reserved_ns + ttl_ns + lead_ns + pause_ns)
        trial->reserved_ns = now_ns;
    uint64_t end_ns = trial->reserved_ns + ttl_ns;
    if (now_ns < end_ns)
        until_ns = end_ns > now_ns + lead_ns ? end_ns : now_ns + lead_ns;
    (void)pthread_mutex_unlock(&trials->lock);
    return until_ns;
}

void trials_rejected(struct trials *trials, const struct meta *pod)
{
    (void)pthread_mutex_lock(&trials->lock);
    slot_of(trials, pod)->reserved_ns = 0;
    (void)pthread_mutex_unlock(&trials->lock);
}
