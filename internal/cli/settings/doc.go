// Package settings is `fairlead settings`: the command shows the settings of the danger zone.
package settings
