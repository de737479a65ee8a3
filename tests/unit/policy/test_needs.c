/* Which kinds each feature reads: the whole table. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "policy/policy.h"

#define BIT(kind_)   (1U << KIND_##kind_)
#define ALWAYS       (BIT(POD) | BIT(NODE) | BIT(CLAIM))
#define NO_PREEMPT   "readWriteOncePod: {preemption: Disabled}\n"
#define NO_ONCE      "readWriteOnce: {mode: Off}\n"
#define NO_CSI       "csiVolumes: {mode: Off}\n"
#define NO_CLASSES   "volumeAttributesClasses: {mode: Off}\n"
#define BUT_PREEMPT  NO_ONCE NO_CSI NO_CLASSES
#define NOTHING      NO_PREEMPT BUT_PREEMPT
#define OF_ONCE      (BIT(VOLUME) | BIT(CSI_DRIVER))
#define OF_CSI       (BIT(VOLUME) | BIT(CSI_DRIVER) | BIT(CSI_NODE) | BIT(STORAGE_CLASS))
#define OF_CLASSES   (BIT(VOLUME) | BIT(VOLUME_ATTRIBUTES_CLASS) | BIT(STORAGE_CLASS))
#define OF_PREEMPT   BIT(POD_DISRUPTION_BUDGET)
#define CLAIMS_ENTRY "{storageClass: fast, runtimeClass: microvm}"
#define INLINE_ENTRY "{csiDriver: inline.example.com, runtimeClass: microvm}"

static const struct need {
    const char *config;
    unsigned kinds; /* besides ALWAYS */
} needs[] = {
    {"", OF_ONCE | OF_CSI | OF_CLASSES | OF_PREEMPT},
    {NOTHING, 0},
    {BUT_PREEMPT, OF_PREEMPT},
    {BUT_PREEMPT "readWriteOncePod: {respectPodDisruptionBudgets: false}\n", OF_PREEMPT},
    {NO_PREEMPT NO_CSI NO_CLASSES, OF_ONCE},
    {NO_PREEMPT NO_CSI NO_CLASSES "readWriteOnce: {mode: Warn}\n", OF_ONCE},
    {NO_PREEMPT NO_CSI NO_CLASSES "readWriteOnce: {mode: Enforce}\n", OF_ONCE},
    {NO_PREEMPT NO_ONCE NO_CLASSES, OF_CSI},
    {NO_PREEMPT NO_ONCE NO_CLASSES "csiVolumes: {mode: Warn, missingCSINode: Reject}\n", OF_CSI},
    {NO_PREEMPT NO_ONCE NO_CSI, OF_CLASSES},
    {NO_PREEMPT NO_ONCE NO_CSI "volumeAttributesClasses: {mode: Warn, waitForModify: true}\n",
     OF_CLASSES},
    {NOTHING "deferFSMount: {entries: [" CLAIMS_ENTRY "]}\n", BIT(VOLUME)},
    {NOTHING "deferFSMount: {entries: [" INLINE_ENTRY ", " CLAIMS_ENTRY "]}\n", BIT(VOLUME)},
    {NOTHING "deferFSMount: {entries: [" INLINE_ENTRY "]}\n", 0},
    {NOTHING "deferFSMount: {apply: Disabled, entries: [" CLAIMS_ENTRY "]}\n", 0},
    {NOTHING "deferFSMount: {apply: Annotation}\n", 0},
};

static struct config *read_config(const char *text)
{
    char path[] = "/tmp/needs-XXXXXX";
    struct config *config;
    struct error err = {0};
    int fd = mkstemp(path);

    cr_assert(fd >= 0 && dprintf(fd,
                                 "apiVersion: claimguard.io/v1alpha1\n"
                                 "kind: ClaimguardConfiguration\n%s",
                                 text) > 0);
    (void)close(fd);
    cr_assert_eq(config_load(&config, path, &err), 0, "%s", err.message);
    (void)unlink(path);
    return config;
}

Test(needs, each_feature_needs_its_kinds_and_no_others)
{
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++) {
        struct config *config = read_config(needs[i].config);
        cr_expect_eq(policy_needed_kinds(config), ALWAYS | needs[i].kinds, "%s: %x, not %x",
                     needs[i].config, policy_needed_kinds(config), ALWAYS | needs[i].kinds);
        for (int kind = 0; kind < KIND_COUNT; kind++)
            cr_expect_eq(policy_needs(config, (enum kind)kind),
                         ((ALWAYS | needs[i].kinds) >> kind & 1) != 0, "%s: %s", needs[i].config,
                         kind_resource((enum kind)kind));
        config_free(config);
    }
}

/* A kind that nothing ever needs should not be among those that are watched. */
Test(needs, every_watched_kind_is_needed_by_something_and_no_other_is)
{
    struct config *config =
        read_config("deferFSMount: {entries: [" CLAIMS_ENTRY ", " INLINE_ENTRY "]}\n");

    cr_expect_eq(policy_needed_kinds(config), (1U << KIND_WATCHED_COUNT) - 1);
    config_free(config);
}
