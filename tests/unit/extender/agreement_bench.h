/*
 * agreement_bench: claimguards that agree, for tests: the ConfigMap at the API server, the time,
 * and what a claimguard does with them.
 *
 * Threads: one.
 */
#ifndef TESTS_UNIT_AGREEMENT_BENCH_H
#define TESTS_UNIT_AGREEMENT_BENCH_H

#include <criterion/criterion.h>
#include <jansson.h>

#include "extender/serving/bind/agreement.h"

#define SECOND NS_PER_SECOND

enum { AGREED_SECONDS = AGREEMENT_MS / 1000, DISPLACED_SECONDS = AGREEMENT_DISPLACED_MS / 1000 };

/* The ConfigMap's data and version, and the time. */
extern json_t *data;
extern unsigned version;
extern uint64_t now_ns;

/* A claimguard. */
struct replica {
    struct agreement agreement;
    struct config config;
    struct defer_entry entries[2];
};

void agreement_setup(void);
void agreement_teardown(void);

/* With two Exclusive entries for the storage class; NULL: with none. The caller frees it. */
struct replica *replica(int claim_lock, const char *storage_class);

/* The answer to a GET. The caller frees it. */
char *config_map(void);

/* Whether the claimguard takes such an answer. */
bool take(struct replica *r, const char *body, uint64_t began_ns);

/* Applies the patch if its precondition holds. */
bool server_patch(struct slice text);

/* Reads, and writes what is due. Whether there was something to write. */
bool tick(struct replica *r);

/* The same in each of so many seconds that pass. */
void ticks(struct replica *r, unsigned seconds);

bool may_bind(struct replica *r);

/* "in force", "announced"; "": there is no such entry. */
const char *value_of(const char *key);

#define IS(key, value) cr_expect_str_eq(value_of(key), (value), "%s: %s", (key), value_of(key))

/* What a policy would do with a claim of the class. */
struct class_state {
    bool is_exclusive, is_locked, is_announced;
};

struct class_state see_class(const struct replica *r, const char *name);

#endif
