"""Which names `luxgrad.mi` has and where each of them lives."""

from __future__ import annotations

_RENDER = "luxgrad.render"
_INTERFACES = f"{_RENDER}.interfaces"
_KINDS = "bsdf emitter film integrator medium phase rfilter sampler sensor shape texture volume".split()

# Attributes of the current variant's types (render/variants.py).
CURRENT = frozenset(
    "Bool Mask Float Float32 Float64 Int Int32 UInt UInt32 UInt64 TensorXf TensorXu Array2f Array3f Point2f Vector2f "
    "Point2u Vector2u Point2i Vector2i Point3f Vector3f Vector3u Vector3i Normal3f Color1f Color3f Spectrum "
    "UnpolarizedSpectrum Point4f Vector4f Matrix2f Matrix3f Matrix4f PCG32".split()
) | {"Int64", "Point3u", "Point3i", "TensorXi", "TensorXf64", "TensorXu8"}

# Built from them: records with Mitsuba's constructors, and transforms of arrays.
RECORDS = frozenset(
    "Transform4f AffineTransform4f ProjectiveTransform4f Transform3f AffineTransform3f ProjectiveTransform3f Ray3f "
    "RayDifferential3f Frame3f SurfaceInteraction3f DirectionSample3f BSDFSample3f".split()
)

# Single values of the current variant's precision.
SCALARS = frozenset(
    "ScalarBool ScalarFloat ScalarFloat32 ScalarFloat64 ScalarInt32 ScalarUInt32 ScalarInt64 ScalarUInt64 "
    "ScalarPoint2f ScalarVector2f ScalarPoint2u ScalarVector2u ScalarPoint2i ScalarVector2i ScalarPoint3f "
    "ScalarVector3f ScalarVector3u ScalarVector3i ScalarNormal3f ScalarColor1f ScalarColor3f ScalarPoint4f "
    "ScalarVector4f ScalarMatrix2f ScalarMatrix3f ScalarMatrix4f".split()
)

MODULES = {"ad": "luxgrad.mi.ad", "util": "luxgrad.mi.util", "warp": "luxgrad.mi.warp", "math": "luxgrad.mi.math"}

OBJECTS: dict[str, tuple[str, str]] = {
    **{n: ("luxgrad.mi.state", n) for n in ("set_variant", "variant", "variant_context", "variants", "NoVariantError")},
    **{n: ("luxgrad.mi.scene", n) for n in ("load_dict", "load_file", "load_string", "render", "cornell_box")},
    **{n: ("luxgrad.mi.logging", n) for n in ("LogLevel", "log_level", "set_log_level")},
    "traverse": (f"{_RENDER}.traverse", "traverse"),
    "SceneParameters": (f"{_RENDER}.traverse", "SceneParameters"),
    "Bitmap": (f"{_RENDER}.image.bitmap", "Bitmap"),
    "Struct": (f"{_RENDER}.image.pixel_format", "Struct"),
    "ScalarTransform3f": (f"{_RENDER}.transform", "ScalarTransform3f"),
    "ScalarTransform4f": (f"{_RENDER}.transform", "ScalarTransform4f"),
    "Properties": (f"{_RENDER}.properties", "Properties"),
    "file_resolver": ("luxgrad.scenes.resolver", "file_resolver"),
    "FileResolver": ("luxgrad.scenes.resolver", "FileResolver"),
    "write_dict": ("luxgrad.scenes.writer", "write_dict"),
    "dict_to_xml": ("luxgrad.scenes.writer", "dict_to_xml"),
    "Object": (f"{_INTERFACES}.object", "Object"),
    "ParamFlags": (f"{_INTERFACES}.object", "ParamFlags"),
    "RayFlags": ("luxgrad.mi.flags", "RayFlags"),
    "Scene": (f"{_RENDER}.scene", "Scene"),
    "BSDF": (f"{_INTERFACES}.bsdf", "BSDF"),
    "BSDFContext": (f"{_INTERFACES}.bsdf", "BSDFContext"),
    "BSDFFlags": (f"{_INTERFACES}.bsdf", "BSDFFlags"),
    "TransportMode": (f"{_INTERFACES}.bsdf", "TransportMode"),
    "Emitter": (f"{_INTERFACES}.emitter", "Emitter"),
    "EmitterFlags": (f"{_INTERFACES}.emitter", "EmitterFlags"),
    "Film": (f"{_INTERFACES}.film", "Film"),
    "Integrator": (f"{_INTERFACES}.integrator", "Integrator"),
    "SamplingIntegrator": (f"{_INTERFACES}.integrator", "SamplingIntegrator"),
    "ReconstructionFilter": (f"{_INTERFACES}.rfilter", "ReconstructionFilter"),
    "Sampler": (f"{_INTERFACES}.sampler", "Sampler"),
    "Sensor": (f"{_INTERFACES}.sensor", "Sensor"),
    "Shape": (f"{_INTERFACES}.shape", "Shape"),
    "Texture": (f"{_INTERFACES}.texture", "Texture"),
    "luminance": (f"{_INTERFACES}.texture", "luminance"),
    "coordinate_system": (f"{_INTERFACES}.records", "coordinate_system"),
    **{n: ("luxgrad.jit.random", n) for n in ("sample_tea_32", "sample_tea_64", "sample_tea_float32")},
    **{f"register_{kind}": (f"{_RENDER}.registry", f"register_{kind}") for kind in _KINDS},
    "__version__": ("luxgrad", "__version__"),
}
