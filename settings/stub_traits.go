package settings

import (
	"fmt"
	"path"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
)

func MemoryTrait(q resource.Quantity) string    { return strconv.FormatInt(q.Value()/(1<<20), 10) }
func LogDirectoryTrait(directory string) string { return path.Clean(directory) }
func CPUTrait(q resource.Quantity) string       { return fmt.Sprintf("%dm", q.MilliValue()) }
func CPUMaskTrait(mask string) string           { return mask }
