// Package fencingreads reads what fencing needs: nodes, volumes and their holders, NetworkFences, and the records of lost nodes.
package fencingreads
