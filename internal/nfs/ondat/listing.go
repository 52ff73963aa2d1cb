package ondat

// Listing is what one poll of the control plane brought.
type Listing struct {
	Volumes []Volume
	// Listed are the IDs of the namespaces whose volumes are all in Volumes.
	Listed map[string]bool
	// Failed are the namespaces that could not be listed, by ID. What is known of
	// their volumes holds on: the error of one namespace says nothing of others.
	Failed map[string]error
}

// Gone says that a volume that is not in the listing no longer exists. namespaceID
// may be empty: unknown. A volume is not taken for gone while its namespace, or any
// namespace if it is not known, could not be listed or is not shown: the right to see
// it may be lost.
func (l Listing) Gone(namespaceID string) bool {
	if namespaceID == "" {
		return len(l.Listed) > 0 && len(l.Failed) == 0
	}
	return l.Listed[namespaceID]
}
