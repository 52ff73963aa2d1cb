package planner

// InstanceManagerFacts are the live facts about the instance manager of a pod.
type InstanceManagerFacts struct {
	// Running: the instance manager exists, is not being deleted, and is in state running.
	Running   bool
	NodeReady bool
	// Instance is an engine or replica of the attached Volume in the instance manager. Both are empty if there is none.
	Instance, Volume string
}
