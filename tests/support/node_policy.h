/*
 * node_policy: policies whose verdict differs from node to node, in place of the product's list.
 * A program that links it has ReadWriteOncePod and these two; each lets every other pod alone:
 *
 *   listed  the pods whose name has "listed": they pass on node-2 and node-4
 *   tested  the pods whose name has "tested": they pass on nodes whose name ends in an even digit
 */
#ifndef TESTS_NODE_POLICY_H
#define TESTS_NODE_POLICY_H

#define NODE_POLICY_LISTED "the pod is for other nodes"
#define NODE_POLICY_TESTED "the node is odd"

#endif
