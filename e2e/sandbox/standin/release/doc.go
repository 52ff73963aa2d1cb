// Package release has what versions of longhorn-manager do otherwise than others, for the stand-in.
package release
