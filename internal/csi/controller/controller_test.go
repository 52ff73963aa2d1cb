package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	fairleadcsi "github.com/fairlead-io/fairlead/internal/csi"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// publisher notes what it was asked, and fails with err.
type publisher struct {
	log []string
	err error
}

func (p *publisher) Publish(_ context.Context, driver, volume, node string) (map[string]string, error) {
	p.log = append(p.log, fmt.Sprint("publish ", driver, volume, node))
	return map[string]string{fairleadcsi.AddressKey(driver): "10.0.0.1"}, p.err
}

func (p *publisher) Unpublish(_ context.Context, driver, volume, node string) error {
	p.log = append(p.log, fmt.Sprint("unpublish ", driver, volume, node))
	return p.err
}

func (p *publisher) HasVolume(_ context.Context, _, volume string) (bool, error) {
	return volume == "v", p.err
}

func filesystem(mode csi.VolumeCapability_AccessMode_Mode) *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: mode},
	}
}

var shared = filesystem(csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER)

var block = &csi.VolumeCapability{
	AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}},
	AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
}

func TestPublishAsksThePublisher(t *testing.T) {
	p := &publisher{}
	s := &Server{Driver: "d", Publisher: p}
	resp, err := s.ControllerPublishVolume(context.Background(), &csi.ControllerPublishVolumeRequest{VolumeId: "v", NodeId: "n", VolumeCapability: shared})
	if err != nil || resp.GetPublishContext()["d/assigned-ip"] != "10.0.0.1" {
		t.Errorf("%v, %v", resp, err)
	}
	reader := filesystem(csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY)
	if _, err := s.ControllerPublishVolume(context.Background(), &csi.ControllerPublishVolumeRequest{VolumeId: "v", NodeId: "n", VolumeCapability: reader}); err != nil {
		t.Error(err)
	}
	must.Equal(t, strings.Join(p.log, "; "), "publish dvn; publish dvn")
}

// The GKE driver refuses a request without a node; the spec says: from all nodes.
func TestUnpublishWithoutNodeMeansAllNodes(t *testing.T) {
	p := &publisher{err: fmt.Errorf("volume: %w", fairleadcsi.ErrNotFound)}
	s := &Server{Driver: "d", Publisher: p}
	if _, err := s.ControllerUnpublishVolume(context.Background(), &csi.ControllerUnpublishVolumeRequest{VolumeId: "v"}); err != nil {
		t.Error(err)
	}
	must.Equal(t, strings.Join(p.log, "; "), "unpublish dv")
}

// The GKE driver answers Internal for a node that does not exist.
func TestErrorsOfThePublisherHaveTheirCodes(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range []struct {
		err  error
		ctx  context.Context
		code codes.Code
	}{
		{fairleadcsi.ErrNotFound, ended, codes.NotFound}, {fairleadcsi.ErrInvalid, ended, codes.InvalidArgument},
		{fairleadcsi.ErrIncompatible, ended, codes.AlreadyExists}, {fairleadcsi.ErrBusy, ended, codes.Aborted},
		{fairleadcsi.ErrUnavailable, ended, codes.Unavailable}, {errors.New("other"), context.Background(), codes.Internal}, {errors.New("other"), ended, codes.Canceled},
	} {
		s := &Server{Driver: "d", Publisher: &publisher{err: fmt.Errorf("node n: %w", c.err)}}
		_, err := s.ControllerPublishVolume(c.ctx, &csi.ControllerPublishVolumeRequest{VolumeId: "v", NodeId: "n", VolumeCapability: shared})
		must.Equal(t, status.Code(err), c.code, "%v: %v", c.err, err)
	}
}

func TestInvalidRequestsReachNoPublisher(t *testing.T) {
	p := &publisher{}
	s, ctx := &Server{Driver: "d", Publisher: p}, context.Background()
	var errs []error
	for _, req := range []*csi.ControllerPublishVolumeRequest{
		{NodeId: "n", VolumeCapability: shared}, {VolumeId: "v", VolumeCapability: shared}, {VolumeId: "v", NodeId: "n"}, {VolumeId: "v", NodeId: "n", VolumeCapability: block},
	} {
		_, err := s.ControllerPublishVolume(ctx, req)
		errs = append(errs, err)
	}
	_, err := s.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{NodeId: "n"})
	errs = append(errs, err)
	for _, req := range []*csi.ValidateVolumeCapabilitiesRequest{
		{VolumeCapabilities: []*csi.VolumeCapability{shared}}, {VolumeId: "v"}, {VolumeId: "v", VolumeCapabilities: []*csi.VolumeCapability{{}}},
	} {
		_, err := s.ValidateVolumeCapabilities(ctx, req)
		errs = append(errs, err)
	}
	for i, err := range errs {
		must.Equal(t, status.Code(err), codes.InvalidArgument, "%d: %v", i, err)
	}
	if len(p.log) != 0 {
		t.Error(p.log)
	}
}

func TestValidateConfirmsWhatAShareHas(t *testing.T) {
	s := &Server{Driver: "d", Publisher: &publisher{}}
	validate := func(volume string, list ...*csi.VolumeCapability) (*csi.ValidateVolumeCapabilitiesResponse, error) {
		return s.ValidateVolumeCapabilities(context.Background(), &csi.ValidateVolumeCapabilitiesRequest{
			VolumeId: volume, VolumeCapabilities: list, VolumeContext: map[string]string{"share": "/x"},
		})
	}
	if got, err := validate("v", shared); err != nil || got.GetConfirmed().GetVolumeContext()["share"] != "/x" || len(got.GetConfirmed().GetVolumeCapabilities()) != 1 {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := validate("v", shared, block); err != nil || got.GetConfirmed() != nil || !strings.Contains(got.GetMessage(), "block") {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := validate("other", shared); status.Code(err) != codes.NotFound {
		t.Error(err)
	}
}

func TestOnlyWhatWorksIsAdvertised(t *testing.T) {
	s := &Server{}
	got, err := s.ControllerGetCapabilities(context.Background(), nil)
	if err != nil || len(got.GetCapabilities()) != 1 || got.GetCapabilities()[0].GetRpc().GetType() != csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := s.CreateVolume(context.Background(), nil); status.Code(err) != codes.Unimplemented {
		t.Error(err)
	}
}
