package server

import (
	"context"
	"fmt"
	"log/slog"
	"path"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Metrics of calls.
type Metrics struct{ duration *prometheus.HistogramVec }

// NewMetrics registers fairlead_csi_call_duration_seconds, by method and code.
func NewMetrics(r prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "fairlead_csi_call_duration_seconds", Help: "Duration of CSI calls.",
		Buckets: []float64{.005, .025, .1, .5, 1, 2.5, 5, 10, 30, 60, 120},
	}, []string{"method", "code"})}
	if err := r.Register(m.duration); err != nil {
		return nil, fmt.Errorf("registering metrics of calls: %w", err)
	}
	return m, nil
}

// observe logs and counts calls. Requests and responses may hold secrets and are not logged.
func (o Options) observe(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	began := time.Now()
	resp, err := next(ctx, req)
	took, method, code := time.Since(began), path.Base(info.FullMethod), status.Code(err)
	if o.Metrics != nil {
		o.Metrics.duration.WithLabelValues(method, code.String()).Observe(took.Seconds())
	}
	level, args := slog.LevelDebug, []any{"method", method, "code", code.String(), "took", took.String()}
	if err != nil {
		level, args = slog.LevelWarn, append(args, "error", status.Convert(err).Message())
	}
	if v, ok := req.(interface{ GetVolumeId() string }); ok && v.GetVolumeId() != "" {
		args = append(args, "volume", v.GetVolumeId())
	}
	if v, ok := req.(interface{ GetTargetPath() string }); ok {
		args = append(args, "target", v.GetTargetPath())
	}
	o.Log.Log(ctx, level, "CSI call", args...)
	return resp, err
}

// recovered turns a panic into Internal: one bad call must not end the others.
func recovered(log *slog.Logger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
		defer func() {
			if p := recover(); p != nil {
				log.Error("A call panicked", "method", info.FullMethod, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				resp, err = nil, status.Errorf(codes.Internal, "%s panicked: %v; see the driver's log, and report it as a defect", path.Base(info.FullMethod), p)
			}
		}()
		return next(ctx, req)
	}
}
