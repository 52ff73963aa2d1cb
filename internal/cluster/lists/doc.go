// Package lists reads large lists from the API server in pages, and keeps only the fields that are used.
package lists
