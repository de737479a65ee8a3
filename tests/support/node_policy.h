/*
 * node_policy: policies whose verdict differs from node to node, and one that only warns, in place
 * of the product's list. A program that links it has ReadWriteOncePod and these; each lets every
 * other pod alone:
 *
 *   listed  the pods whose name has "listed": they pass on node-2 and node-4
 *   tested  the pods whose name has "tested": they pass on nodes whose name ends in an even digit;
 *           those whose name also has "waiting" wait for CSI driver NODE_POLICY_AWAITED on others
 *   warned  in the mode that is configured for readWriteOnce (the default: Warn): the pods whose
 *           name has "warned" pass on node-1; those whose name has "doomed" never pass, nor does a
 *           pod of either name that has an inline volume
 */
#ifndef TESTS_NODE_POLICY_H
#define TESTS_NODE_POLICY_H

#define NODE_POLICY_LISTED  "the pod is for other nodes"
#define NODE_POLICY_TESTED  "the node is odd"
#define NODE_POLICY_AWAITED "awaited.example.com"
#define NODE_POLICY_WARNED  "the pod is for node-1"
#define NODE_POLICY_DOOMED  "the pod is doomed"
#define NODE_POLICY_INLINE  "the pod has an inline volume"

#endif
