package fence

import "strings"

// Off tells whether the data of the ConfigMap switch off. Who is in a hurry may
// write False; a ConfigMap or key that is not there switches nothing.
func (s Switch) Off(data map[string]string) bool {
	return strings.EqualFold(strings.TrimSpace(data[s.Key]), "false")
}
