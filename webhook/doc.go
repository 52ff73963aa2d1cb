// Package webhook routes admission reviews to the rules of mutators and validators, and gathers the facts of each rule.
package webhook
