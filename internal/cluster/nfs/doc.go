// Package nfs reads NFSServices and their volumes.
package nfs
