// Package lists reads large lists from the API server page by page, and keeps only the fields in use.
package lists
