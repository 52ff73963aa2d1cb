// Package fences is `fairlead fences`: the command shows NodeFences and drills the loss of a node.
package fences
