package nodes
import "testing"
func TestHold(t *testing.T) { ctx, c := start(t); if err := c.InstallLonghorn(ctx); err != nil { t.Error(err) }; t.Fatal("hold") }
