"""onnxruntime, which scores networks in ONNX: launch/setup.sh test installs it."""

try:
    import onnxruntime  # noqa: F401
    WHY_NOT = ""
except ImportError as error:
    WHY_NOT = f"no onnxruntime, which launch/setup.sh test installs: {error}"
