"""Networks as files for other libraries: ONNX, and PyTorch source with its weights."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from lapwing import __version__
from lapwing.checks import as_path
from lapwing.encoders.plain import (
    Convolution,
    Elementwise,
    FourierFeatures,
    Layer,
    Linear,
    PlainNetwork,
    Rearrangement,
    Scaling,
)
from lapwing.errors import ArgumentError, MissingExtraError
from lapwing.storage.files import write_bytes
from lapwing.storage.models import MANIFEST, NEXT_WEIGHTS, WEIGHTS

INPUT, OUTPUT = "observations", "components"
# Read by every ONNX runtime since 2022.
OPSET, IR_VERSION = 17, 8


def export_network(
    network: PlainNetwork, eigenvalues: NDArray[np.float64], title: str, path: str | Path, weights: str | Path | None
) -> list[Path]:
    """Write a network as ``.onnx``, or as the ``.py`` source of a PyTorch module with its weights.

    Args:
        network: plain layers.
        eigenvalues: (dim,), which are written beside the weights.
        title: what the network is, in a few words.
        path: the file; its suffix decides.
        weights: the ``.safetensors`` file of a PyTorch module; None for the same name beside the source.

    Returns:
        The files that were written.
    """
    target = as_path(path, "the file to export to")
    if target.suffix == ".onnx":
        if weights is not None:
            raise ArgumentError("an ONNX file holds its weights; leave the second file out")
        return [write_bytes(target, onnx_bytes(network, eigenvalues, title))]
    if target.suffix != ".py":
        raise ArgumentError(f"export to a file that ends in .onnx, or in .py for PyTorch; got {target}")
    held = target.with_suffix(".safetensors") if weights is None else as_path(weights, "the file of the weights")
    if held.suffix != ".safetensors":
        raise ArgumentError(f"the weights of a PyTorch module go to a file that ends in .safetensors; got {held}")
    if held.name in (WEIGHTS, NEXT_WEIGHTS) and (held.parent / MANIFEST).exists():
        raise ArgumentError(f"{held} belongs to a saved model; choose another name, such as torch.safetensors")
    source = torch_source(network, title, target.stem, held)
    return [write_bytes(held, save(torch_arrays(network, eigenvalues))), write_bytes(target, source.encode())]


def onnx_bytes(network: PlainNetwork, eigenvalues: NDArray[np.float64], title: str) -> bytes:
    """A network in the ONNX format; the number of observations is free.

    Args:
        network: plain layers.
        eigenvalues: (dim,), as text among the metadata.
        title: what the network is.

    Returns:
        The content of the file.
    """
    try:
        import onnx
        from onnx import helper, numpy_helper
    except ImportError as error:
        raise MissingExtraError("exporting to ONNX needs an extra: pip install 'lapwing[onnx]'") from error

    nodes: list[Any] = []
    constants: list[Any] = []

    def constant(array: NDArray[Any]) -> str:
        name = f"constant_{len(constants)}"
        constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def node(operator: str, *inputs: str, **attributes: Any) -> str:
        output = f"value_{len(nodes)}"
        nodes.append(helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    value = INPUT
    for layer in network.layers:
        value = _onnx_layer(layer, value, node, constant)
    nodes[-1].output[0] = OUTPUT
    floats = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "laplacian_representation",
        [helper.make_tensor_value_info(INPUT, floats, ["n", *network.observation_shape])],
        [helper.make_tensor_value_info(OUTPUT, floats, ["n", network.dim])],
        constants,
    )
    model = helper.make_model(
        graph,
        producer_name="lapwing",
        producer_version=__version__,
        doc_string=title,
        ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid("", OPSET)],
    )
    helper.set_model_props(model, {"eigenvalues": " ".join(map(repr, eigenvalues.tolist()))})
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString())


def _onnx_layer(layer: Layer, value: str, node: Any, constant: Any) -> str:
    """Add the operators of a layer; the name of its output."""
    if isinstance(layer, Scaling):
        return node("Div", node("Sub", value, constant(layer.centre)), constant(layer.scale))
    if isinstance(layer, Rearrangement):
        if layer.axes != tuple(range(len(layer.axes))):
            value = node("Transpose", value, perm=list(layer.axes))
        return node("Reshape", value, constant(np.array([-1, *layer.shape], dtype=np.int64)))
    if isinstance(layer, FourierFeatures):
        phases = node("MatMul", value, constant(layer.frequencies))
        both = node("Concat", node("Sin", phases), node("Cos", phases), axis=1)
        return node("Mul", both, constant(np.array(np.sqrt(2.0), dtype=np.float32)))
    if isinstance(layer, Linear):
        return node("Gemm", value, constant(layer.weight), constant(layer.bias))
    if isinstance(layer, Convolution):
        attributes = {"strides": [layer.stride] * 2, "pads": list(layer.padding)}
        return node("Conv", value, constant(layer.weight), constant(layer.bias), **attributes)
    if layer.name == "relu":
        return node("Relu", value)
    if layer.name == "silu":
        return node("Mul", value, node("Sigmoid", value))
    grown = node("Log", node("Add", node("Abs", value), constant(np.ones((), dtype=np.float32))))
    return node("Mul", node("Sign", value), grown)


# What PyTorch does not have; a file holds those that its network uses.
TORCH_CLASSES = {
    "Scaling": """
class Scaling(nn.Module):
    def __init__(self, centre, scale):
        super().__init__()
        self.register_buffer("centre", torch.zeros(centre))
        self.register_buffer("scale", torch.ones(scale))

    def forward(self, x):
        return (x - self.centre) / self.scale
""",
    "Rearrangement": """
class Rearrangement(nn.Module):
    def __init__(self, axes, shape):
        super().__init__()
        self.axes, self.shape = axes, shape

    def forward(self, x):
        return x.permute(self.axes).reshape(len(x), *self.shape)
""",
    "FourierFeatures": """
class FourierFeatures(nn.Module):
    def __init__(self, inputs, features):
        super().__init__()
        self.register_buffer("frequencies", torch.zeros(inputs, features))

    def forward(self, x):
        phases = x @ self.frequencies
        return 2**0.5 * torch.cat([phases.sin(), phases.cos()], dim=1)
""",
    "Symlog": """
class Symlog(nn.Module):
    def forward(self, x):
        return x.sign() * x.abs().log1p()
""",
}
TORCH_FUNCTIONS = {"relu": "nn.ReLU()", "silu": "nn.SiLU()", "symlog": "Symlog()"}

TORCH_SOURCE = '''"""{title}: ({inputs}) observations to (n, {dim}) components, by ascending eigenvalue.

    from {module} import load

    components = load()(observations)

Written by lapwing {version}. It needs torch and safetensors, and not lapwing.
"""

from pathlib import Path

import torch
from torch import nn

{classes}
class LaplacianNetwork(nn.Module):
    """Components of observations; ``eigenvalues`` holds an eigenvalue for each."""

    def __init__(self):
        super().__init__()
        self.register_buffer("eigenvalues", torch.zeros({dim}, dtype=torch.float64))
        self.layers = nn.Sequential(
{layers}        )

    def forward(self, observations):
        return self.layers(observations.to(next(self.parameters()).dtype))


def load(weights=None):
    """The network with its weights, by default those of the file beside this one."""
    from safetensors.torch import load_file

    network = LaplacianNetwork()
    network.load_state_dict(load_file(weights or Path(__file__).with_name({weights})))
    return network.eval()
'''


def torch_source(network: PlainNetwork, title: str, module: str, weights: Path) -> str:
    """The source of a PyTorch module that depends on torch and safetensors alone.

    Args:
        network: plain layers.
        title: what the network is, for its first line.
        module: the name that it is imported by.
        weights: the file of weights.

    Returns:
        Python source.
    """
    lines = [line for layer in network.layers for line in _torch_layer(layer)]
    used = [text for name, text in TORCH_CLASSES.items() if any(line.startswith(f"{name}(") for line in lines)]
    return TORCH_SOURCE.format(
        title=_in_docstring(title),
        inputs=", ".join(map(str, ("n", *network.observation_shape))),
        dim=network.dim,
        module=_in_docstring(module),
        version=__version__,
        classes="".join(f"{text}\n" for text in used),
        layers="".join(f"            {line},\n" for line in lines),
        weights=repr(weights.name),
    )


def _in_docstring(text: str) -> str:
    """Text that cannot end the docstring it is put into."""
    return text.replace("\\", " ").replace('"', "'")


def torch_module(network: PlainNetwork) -> Any:
    """The PyTorch module of :func:`torch_source`, its weights not yet set.

    Args:
        network: plain layers.

    Returns:
        A ``torch.nn.Module``; :func:`torch_arrays` is its state.
    """
    names: dict[str, Any] = {"__name__": __name__}
    exec(torch_source(network, "", "", Path()), names)
    return names["LaplacianNetwork"]()


def torch_arrays(network: PlainNetwork, eigenvalues: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
    """The state of the PyTorch module of :func:`torch_source`.

    Args:
        network: plain layers.
        eigenvalues: (dim,).

    Returns:
        Arrays by the names that PyTorch has for them.
    """
    found = {"eigenvalues": np.asarray(eigenvalues, dtype=np.float64)}
    number = 0
    for layer in network.layers:
        number += len(_torch_layer(layer))
        for name, array in _torch_parameters(layer):
            found[f"layers.{number - 1}.{name}"] = np.ascontiguousarray(array)
    return found


def _torch_layer(layer: Layer) -> list[str]:
    """Modules of PyTorch, as source; the last holds the arrays."""
    if isinstance(layer, Scaling):
        return [f"Scaling({layer.centre.shape}, {layer.scale.shape})"]
    if isinstance(layer, Rearrangement):
        return [f"Rearrangement({layer.axes}, {layer.shape})"]
    if isinstance(layer, FourierFeatures):
        return ["FourierFeatures({}, {})".format(*layer.frequencies.shape)]
    if isinstance(layer, Linear):
        return ["nn.Linear({}, {})".format(*layer.weight.shape)]
    if isinstance(layer, Elementwise):
        return [TORCH_FUNCTIONS[layer.name]]
    top, left, bottom, right = layer.padding
    outputs, channels, side, _ = layer.weight.shape
    convolution = f"nn.Conv2d({channels}, {outputs}, {side}, stride={layer.stride})"
    return [f"nn.ZeroPad2d({(left, right, top, bottom)})", convolution] if any(layer.padding) else [convolution]


def _torch_parameters(layer: Layer) -> Iterator[tuple[str, NDArray[Any]]]:
    if isinstance(layer, Scaling):
        yield from (("centre", layer.centre), ("scale", layer.scale))
    elif isinstance(layer, FourierFeatures):
        yield "frequencies", layer.frequencies
    elif isinstance(layer, Linear):
        yield from (("weight", layer.weight.T), ("bias", layer.bias))
    elif isinstance(layer, Convolution):
        yield from (("weight", layer.weight), ("bias", layer.bias))
