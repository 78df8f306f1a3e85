# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Quick start
#
# A scene is rendered, a colour in it is differentiated, and the colours are found again from the picture alone.
# `tools/notebooks.py` makes the notebook from `quickstart.py`.

# %% tags=["parameters"]
SIZE, SPP, STEPS = 128, 32, 60

# %% [markdown]
# ## A picture
#
# `luxgrad.mi` has the names of Mitsuba 3, `luxgrad` those of Dr.Jit. A variant chooses the array types: compiled for
# this processor, with derivatives, RGB colours, single precision. `mi.cornell_box()` is a plain dictionary; scene
# files (XML) are loaded by `mi.load_file`.

# %%
import numpy as np

import luxgrad as dr
import luxgrad.mi as mi

mi.set_variant("llvm_ad_rgb")

box = mi.cornell_box()
box["sensor"]["film"] |= {"width": SIZE, "height": SIZE}
scene = mi.load_dict(box)
image = mi.render(scene, spp=8 * SPP)
mi.util.convert_to_bitmap(image)

# %% [markdown]
# The image is a tensor of shape (height, width, channels), linear colours; NumPy sees it without a copy.

# %%
image.shape, np.array(image).mean(axis=(0, 1))

# %% [markdown]
# ## Parameters
#
# `mi.traverse` lists everything that can be read and changed, by names that follow the scene. ∂ marks what has
# derivatives.

# %%
params = mi.traverse(scene)
params.keep(".*reflectance|.*radiance|small-box")
params

# %% [markdown]
# Setting a value and calling `update` changes the scene; what depends on the value is brought up to date.

# %%
red = mi.Color3f(params["red.reflectance.value"])
params["red.reflectance.value"] = mi.Color3f(0.1, 0.2, 0.6)
params.update()
blue_wall = mi.render(scene, spp=2 * SPP)
params["red.reflectance.value"] = red
params.update()
mi.util.convert_to_bitmap(blue_wall)

# %% [markdown]
# ## A derivative
#
# How does the mean brightness of the picture change with the colour of the red wall? The integrator `prb` replays each
# path to differentiate it, in constant memory. The same number comes from two pictures with slightly different walls.

# %%
key = "red.reflectance.value"
replay = mi.load_dict({"type": "prb", "max_depth": 8})
dr.enable_grad(params[key])
params.update()
picture = mi.render(scene, params, integrator=replay, spp=4 * SPP, seed=1)
dr.backward(dr.mean(picture))
gradient = np.array(dr.grad(params[key])).ravel()
dr.disable_grad(params[key])
gradient

# %%
means = []
for step in (-0.01, 0.01):
    params[key] = mi.Color3f(float(red.x) + step, float(red.y), float(red.z))
    params.update()
    means.append(float(np.array(mi.render(scene, integrator=replay, spp=4 * SPP, seed=1)).mean()))
params[key] = red
params.update()
difference = (means[1] - means[0]) / 0.02
print(f"derivative {gradient[0]:.5f}, difference of pictures {difference:.5f}")

# %% [markdown]
# ## A fit
#
# Three materials are painted grey. `fit` renders, compares with the target, differentiates and steps until the colours
# are back. Each step has a random seed of its own; values stay within [0, 1].

# %%
from luxgrad.optim.fit import fit
from luxgrad.optim.losses import relative_l2

target = np.array(mi.render(scene, integrator=replay, spp=16 * SPP, seed=2))
keys = [f"{name}.reflectance.value" for name in ("red", "green", "white")]
truth = {k: np.array(params[k]).ravel() for k in keys}
for k in keys:
    params[k] = mi.Color3f(0.5)
params.update()

result = fit(
    scene, target, keys, lambda rate: mi.ad.Adam(rate, beta_1=0.8, beta_2=0.95), steps=STEPS, spp=SPP // 2,
    lr=0.06, lr_end=0.002, loss=relative_l2, progress=False,
)  # fmt: skip
result

# %%
import matplotlib.pyplot as plt

fig, axes = plt.subplots(1, 4, figsize=(13, 3.2))
for axis, name in zip(axes, ("target", "start", "fitted"), strict=False):
    axis.imshow(np.array(mi.util.convert_to_bitmap(result.images[name])))
    axis.set_title(name)
    axis.axis("off")
axes[3].semilogy(result.losses)
axes[3].set_title("loss")
fig.tight_layout()

# %%
largest_error = max(float(np.abs(result.values[k].ravel() - truth[k]).max()) for k in keys)
for k in keys:
    print(f"{k:<26} true {truth[k].round(3)}  found {result.values[k].ravel().round(3)}")
print(f"largest colour error: {largest_error:.4f}")

# %% [markdown]
# `luxgrad.optim.report.write_report("report.html", result)` writes the same as a page; on the command line,
# `luxgrad fit scene.xml --target picture.exr --params reflectance --report report.html` does all of this.

# %% [markdown]
# ## The engine alone
#
# Below the renderer is a compiler for array programs. Nothing is computed while they are written: the whole expression
# becomes one kernel when a value is needed, and derivatives are recorded like any other operation.

# %%
x = dr.linspace(mi.Float, 0, 1, 5)
dr.enable_grad(x)
y = dr.sin(x) * dr.exp(-x)
dr.backward(y)
y, dr.grad(x)
