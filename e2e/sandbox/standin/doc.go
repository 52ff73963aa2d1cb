// Package standin does what longhorn-manager does with its objects, so that tests of many versions need no storage.
package standin
