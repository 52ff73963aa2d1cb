// Package planner decides what the values in effect require of components: what is restarted or
// changed now, in which order, and what each setting waits for. The webhook's warnings, fairlead
// plan and package controllers/apply use the same plan, so they cannot disagree.
//
// A component is a pod that the storage system creates (instance, backing image and share manager)
// or a template (Deployment, DaemonSet). What a component is built with is compared, trait by trait
// and each in one canonical text, with what the settings want (Definition.Wants). So a crash leaves
// nothing out of step. A setting that no resource sets asks for nothing.
//
//   - Gates: the gate of each setting is judged for that setting alone. A pod restarts once for all
//     settings whose gates are open; a template gets only the fields of those settings.
//   - Steps: apply does one step at a time, decided on the cache and again on a live read, with the
//     pod's UID or the object's version as precondition. The next pod waits until the one before it
//     is Ready. The pod's preconditions (its priority class, network and node) are checked again at its turn.
//   - Placement: one function decides whether a node takes a pod, by labels, taints, CPU, huge pages
//     and cordon (node.go).
//   - Use: an instance manager is in use by what it reports, and by the engines and replicas placed
//     on it, which are written before they start. If the two disagree, it is in use.
//   - DaemonSets: one is rolled out when all its pods are, except pods on a node that is down. The
//     CSI plugin's DaemonSet gets its template like others, and its restarts by steps of package rollout,
//     which knows what is mounted on each node.
//   - Writers: the storage system builds its pods from its own settings. Fairlead writes templates
//     and restarts pods. A change that does not last is retried with growing pauses.
//   - Home: each setting has one home (Resolve). While an older value remains outside it, nothing is
//     applied for that setting.
//   - Memory: status.appliedValue of Fairlead's own settings has the value that was seen rolled out,
//     status.underway whether a component was changed since.
//
// property_test.go checks this with a model of users, volumes, crashing pods, stale views, lost
// nodes and crashes of Fairlead. The model judges gates from facts and not by the code: each gate
// removed from the code turns the model or a table red.
package planner
