package beside

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/e2e/compare"
	"github.com/fairlead-io/fairlead/internal/longhorn"
)

// TestLonghornIsAsRecorded goes with the real manager through the scenario that the stand-in is held against. So a record
// that the real manager no longer agrees with is noticed.
func TestLonghornIsAsRecorded(t *testing.T) {
	s := without(t)
	if s.second {
		t.Fatal("the record is of one manager, and a test before has started the second one")
	}
	if !s.Version.HasSwitch() {
		s.Skip("the stand-in is not held against this version: its network setting has another form")
	}
	run, err := compare.Run(s.ctx, s.Sandbox, real{s.Cluster})
	s.must(err)
	s.set("taint-toleration", "") // as the scenario has found it
	s.must(s.WaitApplied(s.ctx, "taint-toleration", true, settleTimeout))
	folder := filepath.Join("..", "compare", "testdata", s.Version.Name)
	if os.Getenv(compare.RecordVariable) != "" {
		if err := compare.Write(folder, run); err != nil {
			t.Fatal(err)
		}
		t.Log("recorded in " + folder)
		return
	}
	recorded, err := compare.Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	if text := compare.Compare(recorded, run); text != "" {
		t.Error(text)
	}
}

type real struct{ cluster *Cluster }

func (r real) CreateVolume(ctx context.Context, name string) error {
	return r.cluster.CreateVolume(ctx, name, "rwx")
}

// Attach asks Kubernetes' attacher, without a workload: the stand-in has none in this scenario.
func (r real) Attach(ctx context.Context, volume string) error {
	return errors.Join(r.cluster.Client.Create(ctx, attachment(volume)), r.cluster.WaitServed(ctx, volume))
}

func (r real) Detach(ctx context.Context, volume string) error {
	return errors.Join(r.cluster.Client.Delete(ctx, attachment(volume)), r.cluster.WaitVolume(ctx, volume, "detached"))
}

func attachment(volume string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "recorded-" + volume},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: longhorn.DefaultNames().Driver, NodeName: compare.Node,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume},
		},
	}
}
